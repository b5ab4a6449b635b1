"""What a job says while it fetches and loads a model."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from django.db import DatabaseError, connection

from core.jobs.models import Job
from core.jobs.services import job_note

LOADING: Final = "loading"
"""The member of a job's result while its model is loaded: `bytes` fetched, `rate` in bytes per
second; None afterwards."""
EVERY_SECONDS: Final = 1.0


@contextmanager
def loading_noted(job: Job) -> Iterator[None]:
    """Write into the job's result how much of a model was fetched, each second while the block
    loads it; nothing for one that is loaded sooner.
    """
    loaded = threading.Event()
    thread = threading.Thread(target=_watch, args=(job, loaded), daemon=True)
    thread.start()
    try:
        yield
    finally:
        loaded.set()
        thread.join()


def _watch(job: Job, loaded: threading.Event) -> None:
    before, began, noted = _bytes_fetched(), time.monotonic(), False
    try:
        while not loaded.wait(EVERY_SECONDS):
            fetched = max(0, _bytes_fetched() - before)
            rate = fetched / (time.monotonic() - began)
            job_note(job=job, members={LOADING: {"bytes": fetched, "rate": round(rate)}})
            noted = True
        if noted:
            job_note(job=job, members={LOADING: None})
    except DatabaseError:
        pass  # The job's own statement meets the outage, and says so.
    finally:
        connection.close()


def _bytes_fetched() -> int:
    """The bytes of the files that lie in the folders to which open_clip fetches."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = (Path(HF_HUB_CACHE), Path("~/.cache/clip").expanduser())
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            # A file that is whole gets another name meanwhile.
            with suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    total += path.stat().st_size
    return total
