"""Which devices embed a job's images, how fast, and how long and at what cost the rest takes.

Each device's line lies in the result of the job, under the device's number. The lock of the device
lets one process at a time write it.
"""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models.functions import Now

from core.jobs.models import Job
from core.locks import lock_key, locked
from retrieval.embedding.device import device_lock, device_name, device_number
from retrieval.embedding.models import EmbeddingRange

WINDOW_SECONDS: Final = 120.0
"""A device's speed is that of the last two minutes."""
POINT_SECONDS: Final = 10.0
PRICE: Final = "price"
"""Among the parameters of a job, what a device costs an hour."""
REST_SECONDS: Final = 15.0
"""Without a sign of life for longer, a device that holds nothing doesn't take part any more."""


class DeviceProgress:
    """The line of this process's device, while it holds the device's lock."""

    def __init__(self, job: Job) -> None:
        rows = Job.objects.filter(pk=job.pk).annotate(now=Now())
        result, now = rows.values_list("result", "now").get()
        self._key = str(device_number())
        self._to_clock = now.timestamp() - time.monotonic()
        line = result.get(self._key, {})
        self._done: int = line.get("done", 0)
        self._points: list[tuple[float, int]] = [*line.get("points", []), (self._now(), self._done)]
        self._name = {"host": socket.gethostname(), "device": device_name()}

    def _now(self) -> float:
        """By the database's clock, which machines share."""
        return round(time.monotonic() + self._to_clock, 1)

    def line_after(self, done: int, ranges: list[int]) -> dict[str, Any]:
        """The line, for `job_note`, after so many images more; `ranges` are those in hand."""
        self._done, now = self._done + done, self._now()
        if now - self._points[-1][0] > POINT_SECONDS:
            self._points.append((now, self._done))
        self._points = [point for point in self._points if now - point[0] < WINDOW_SECONDS]
        first, before = self._points[0] if self._points else (now, self._done)
        rate = (self._done - before) / (now - first) if now > first else 0.0
        figures = {"done": self._done, "rate": rate, "seen": now, "points": self._points}
        return {self._key: {**self._name, **figures, "ranges": ranges}}


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """A device's part in a job."""

    host: str
    device: str
    done: int
    rate: float
    """Images a second."""
    seen: datetime
    gone: bool
    left: int
    """Of a device that is gone, ranges of images in hand that no other has taken over yet."""
    taken: int
    """And those that others have taken over."""


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """The devices of an embedding job, those at work first; the rest of the work at their speed."""

    devices: list[DeviceLine]
    working: int
    rate: float
    remaining: int | None
    seconds: float | None
    """None while nothing is known of the speed."""
    cost: float | None
    """None without a price."""


def embedding_progress(job: Job) -> EmbeddingProgress:
    """The progress of an embedding job now; two SQL queries."""
    lines = {int(number): line for number, line in job.result.items() if number.isdigit()}
    ranges = EmbeddingRange.objects.filter(job=job).values_list("pk", flat=True)
    of_ranges = {pk: lock_key("embedding_range", pk) for pk in ranges}
    held = locked([*of_ranges.values(), *map(device_lock, lines)])
    now = datetime.now(UTC).timestamp()
    unfinished = job.state in Job.UNFINISHED
    devices = []
    for number, line in lines.items():
        away = bool(line["ranges"]) or now - line["seen"] > REST_SECONDS
        gone = unfinished and away and device_lock(number) not in held
        left = sum(pk in of_ranges and of_ranges[pk] not in held for pk in line["ranges"])
        devices.append(
            DeviceLine(
                host=line["host"],
                device=line["device"],
                done=line["done"],
                rate=line["rate"],
                seen=datetime.fromtimestamp(line["seen"], UTC),
                gone=gone,
                left=left if gone else 0,
                taken=len(line["ranges"]) - left if gone else 0,
            )
        )
    devices.sort(key=lambda line: (line.gone, line.host, line.device))
    working = [line for line in devices if not line.gone] if unfinished else []
    rate = sum(line.rate for line in working)
    remaining = None if job.total is None else max(0, job.total - job.done - job.failed)
    seconds = remaining / rate if remaining is not None and rate else None
    price = job.params.get(PRICE)
    cost = None if price is None or seconds is None else price * len(working) * seconds / 3600
    return EmbeddingProgress(devices, len(working), rate, remaining, seconds, cost)
