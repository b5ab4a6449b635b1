"""The generated secret key, kept beside the data that it protects."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def secret_key(path: Path) -> str:
    """The key stored at `path`; the first caller makes it (50 random bytes, mode 0600).

    Concurrent first callers all return the same key: each writes a whole file of its own and
    links it into place, and only the first link succeeds.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(50))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
    return path.read_text().strip()
