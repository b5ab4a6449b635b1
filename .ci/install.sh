#!/bin/sh
# install.sh VENV STAMP REQUIREMENTS [OTHER FILE ...]
# Makes the virtual environment and installs the first requirements file, unless the stamp in the
# environment says that these very files were installed there.
set -eu

venv=$1
stamp=$1/$2
shift 2
python=${PYTHON:-python3}

if [ -z "$python" ] || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Python 3.11 or newer is needed; found: ${python:-none}. Set PYTHON=/path/to/python3.11" >&2
    exit 1
fi
wanted=$(cat "$@" | cksum)
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi
echo "Setting up $venv (once; this takes some minutes) ..."
if ! [ -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv"
fi
# Modules are compiled when they are first imported: most never are.
"$venv/bin/python" -m pip install --quiet --quiet --no-compile --requirement "$1"
echo "$wanted" >"$stamp"
