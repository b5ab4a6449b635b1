"""Databases of released versions, kept as `tests/data/VERSION.sql.gz`: each must migrate for ever.

`python -m tests.annotator.kept_databases` writes that of the present version, when it is released.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests import ROOT

FOLDER = ROOT / "tests" / "data"


def dump(database: dict[str, Any]) -> str:
    """The SQL that makes the database of Django's settings again, without commands of psql."""
    from annotator.postgres.guardian import program_folder

    command = [
        *(str(program_folder() / "pg_dump"), "--inserts", "--no-owner", "--no-privileges"),
        *("--host", database["HOST"], "--username", database["USER"], database["NAME"]),
    ]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = (line for line in made.splitlines() if not line.startswith(("\\", "--")))
    return "\n".join(filter(None, lines)) + "\n"


def main() -> None:
    """Fill a database with something of everything, and keep it."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django

    django.setup()
    from django.conf import settings
    from django.db import connection

    from annotator.postgres.embedded import embedded_postgres
    from core import __version__
    from tests.annotator.world import make_world
    from tests.databases import use_copy
    from tests.settings import SESSION_DIR

    with tempfile.TemporaryDirectory() as folder:
        use_copy("kept")
        make_world(settings, Path(folder))
        sql = dump(connection.settings_dict)
        connection.close()
    embedded_postgres(SESSION_DIR).leave(wait=True)
    (FOLDER / f"{__version__}.sql.gz").write_bytes(gzip.compress(sql.encode(), mtime=0))


if __name__ == "__main__":
    main()
