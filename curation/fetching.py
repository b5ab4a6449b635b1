"""Downloading a corpus's images: in parallel, at a limited rate, resumable."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import requests
from PIL import Image, ImageOps
from urllib3.util import Retry

from curation.corpus_files import ADDRESSES
from curation.tables import CurationRefused

FETCHED: Final = "fetched.csv"
FAILED: Final = "failed.csv"
QUALITY: Final = 90
LARGEST_FILE: Final = 50_000_000
#: Of an image, as an import takes by default.
MOST_PIXELS: Final = 178_956_970
USER_AGENT: Final = "inquire-annotator (benchmark curation)"

# The sizes in which iNaturalist holds each photo, by the longest side in pixels.
_SIZES: Final = ((240, "small"), (500, "medium"), (1024, "large"))
_INATURALIST: Final = re.compile(r"(inaturalist[^/]*/photos/\d+/)[a-z]+(\.)")


@dataclass(frozen=True)
class Fetched:
    """How many images are there, how many were there before, and why others failed."""

    present: int
    before: int
    failed: dict[str, int]


class Pace:
    """Spaces the requests to each host."""

    def __init__(self, per_second: float) -> None:
        self._gap = 1 / per_second
        self._next: defaultdict[str, float] = defaultdict(float)
        self._lock = threading.Lock()

    def wait(self, host: str) -> None:
        """Return when the host may get another request."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next[host])
            self._next[host] = turn + self._gap
        time.sleep(turn - now)


def fetch(
    folder: Path,
    *,
    longest_side: int,
    per_second: float = 10.0,
    threads: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> Fetched:
    """Download the images of `images.csv` to their paths below the folder.

    Each image is turned upright, reduced to `longest_side` pixels, and written as JPEG of quality
    90 without metadata, whole or not at all. `fetched.csv` gets its SHA-256, size and number of
    bytes, `failed.csv` the images that failed and why. Images that are there are skipped, so the
    same call continues an interrupted run. A host gets at most `per_second` requests; a busy host
    (429, 5xx) gets five retries, after the time in its Retry-After.
    """
    path = folder / ADDRESSES
    if not path.is_file():
        raise CurationRefused(str(path), "is missing: run the curation first")
    with path.open(newline="", encoding="utf-8") as file:
        total = sum(1 for _ in csv.DictReader(file))
    done = _fetched(folder)
    pace, lock = Pace(per_second), threading.Lock()
    local = threading.local()
    failed: list[tuple[str, str, str]] = []
    count = 0

    def fetch_image(row: dict[str, str]) -> None:
        nonlocal count
        name, url = row["file_name"], row["url"]
        try:
            if not hasattr(local, "session"):
                local.session = _session()
            data = _read(local.session, pace, _sized(url, longest_side))
            image, size = _reduced(data, longest_side)
        except (requests.RequestException, OSError, ValueError, Image.DecompressionBombError) as e:
            with lock:
                failed.append((name, url, _reason(e)))
        else:
            _write_whole(folder / name, image)
            entry = [name, hashlib.sha256(image).hexdigest(), *size, len(image)]
            with lock:
                writer.writerow(entry)
                log.flush()
                count += 1
        if progress:
            progress(len(done) + count + len(failed), total)

    new = not (folder / FETCHED).exists()
    with (
        (folder / FETCHED).open("a", newline="", encoding="utf-8") as log,
        path.open(newline="", encoding="utf-8") as addresses,
        ThreadPoolExecutor(threads) as pool,
    ):
        writer = csv.writer(log, lineterminator="\n")
        if new:
            writer.writerow(["file_name", "sha256", "width", "height", "bytes"])
        missing = (row for row in csv.DictReader(addresses) if row["file_name"] not in done)
        # A few thousand at a time, so that memory doesn't grow with the corpus.
        while rows := list(islice(missing, 5000)):
            list(pool.map(fetch_image, rows))
    with (folder / FAILED).open("w", newline="", encoding="utf-8") as file:
        failed_rows = csv.writer(file, lineterminator="\n")
        failed_rows.writerow(["file_name", "url", "reason"])
        failed_rows.writerows(sorted(failed))
    return Fetched(len(done) + count, len(done), dict(Counter(r for *_, r in failed)))


def _fetched(folder: Path) -> set[str]:
    """The names of the images that are there and whole. Drops a line that a kill cut short."""
    path = folder / FETCHED
    if not path.is_file():
        return set()
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        path.write_text(text, encoding="utf-8")
    names = set()
    for row in csv.DictReader(text.splitlines()):
        file = folder / row["file_name"]
        if file.is_file() and file.stat().st_size == int(row["bytes"]):
            names.add(row["file_name"])
    return names


def _session() -> requests.Session:
    session = requests.Session()
    retry = Retry(total=5, backoff_factor=1, status_forcelist=(429, 500, 502, 503, 504))
    adapter = requests.adapters.HTTPAdapter(max_retries=retry)
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    session.headers["User-Agent"] = USER_AGENT
    return session


def _sized(url: str, longest_side: int) -> str:
    """The address of iNaturalist's smallest size that suffices."""
    size = next((name for side, name in _SIZES if side >= longest_side), "original")
    return _INATURALIST.sub(rf"\g<1>{size}\g<2>", url)


def _read(session: requests.Session, pace: Pace, url: str) -> bytes:
    if url.startswith("/"):
        return Path(url).read_bytes()
    host = urlsplit(url).netloc
    if urlsplit(url).scheme not in ("http", "https") or not host:
        raise ValueError("not an address that can be fetched")
    pace.wait(host)
    with session.get(url, timeout=30, stream=True) as answer:
        answer.raise_for_status()
        data = bytearray()
        for part in answer.iter_content(1 << 16):
            data += part
            if len(data) > LARGEST_FILE:
                raise ValueError("larger than 50 MB")
        length = answer.headers.get("Content-Length")
        if length and "Content-Encoding" not in answer.headers and len(data) < int(length):
            raise ValueError("cut short")
    return bytes(data)


def _reduced(data: bytes, longest_side: int) -> tuple[bytes, tuple[int, int]]:
    """The image as an upright JPEG of at most `longest_side` pixels, without metadata; its size."""
    with Image.open(io.BytesIO(data)) as opened:
        if opened.width * opened.height > MOST_PIXELS:
            raise ValueError("more than 178 million pixels")
        image = ImageOps.exif_transpose(opened).convert("RGB")
    image.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue(), image.size


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{threading.get_ident()}.part")
    part.write_bytes(data)
    os.replace(part, path)


def _reason(error: Exception) -> str:
    """A short reason that is the same for the same fault."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"answered {error.response.status_code}"
    if isinstance(error, requests.exceptions.RetryError):
        return "busy, or failing again and again"
    if isinstance(error, requests.RequestException):
        return "no connection, or broken off"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, ValueError):
        return str(error)
    return "not an image that can be read"
