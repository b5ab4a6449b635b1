"""Keeps child processes running, and ends them and all that they started."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from core.parent_death import end_with_parent

CHECK_SECONDS = 0.1
GRACE_SECONDS = 12.0
# Zombies that nobody collects stay in their session for good.
CLEAR_SECONDS = 2.0
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
# A child that ran this long before it ended is started again after the first, short pause.
SETTLED_SECONDS = 60.0
LOG_BYTES = 20_000_000

logger = logging.getLogger(__name__)


@dataclass
class Child:
    """A program to run: once, or for as long as the supervisor runs.

    `log` is the file that its output is appended to; without one it writes to our terminal.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path | None = None
    once: bool = False
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    again_at: float = 0.0
    pause: float = field(default=FIRST_PAUSE_SECONDS)

    def start(self) -> None:
        """Start it as the leader of its own session, so that Ctrl-C does not reach it."""
        parent = os.getpid()
        output = None if self.log is None else _open_log(self.log)
        try:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=lambda: end_with_parent(parent),
            )
        finally:
            if output is not None:
                os.close(output)
        self.started = time.monotonic()

    def ended(self) -> int | None:
        """The exit status once it has ended, else None."""
        return None if self.process is None else self.process.poll()

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def clear(self) -> None:
        """Kill whatever is left of its session, and wait until that is gone."""
        if self.process is None:
            return
        deadline = time.monotonic() + CLEAR_SECONDS
        with suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < deadline:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.poll()
                time.sleep(0.01)


class Supervisor:
    """Runs children until SIGINT, SIGTERM or SIGHUP, or `finish`."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self.say = say
        self.children: list[Child] = []
        self.ending = False

    def listen(self) -> None:
        """Take the signals that ask us to end; a second one kills what has not ended yet."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._asked_to_end)

    def run(self, child: Child) -> None:
        """Start a child and keep it under watch."""
        child.start()
        self.children.append(child)

    def wait(self, condition: Callable[[], bool], *, every: float = CHECK_SECONDS) -> bool:
        """Watch the children until `condition` holds (True) or we are asked to end (False)."""
        while not self.ending:
            if condition():
                return True
            time.sleep(every)
            self.restart_ended()
        return False

    def restart_ended(self) -> None:
        """Start again what has ended, after a pause that doubles while it keeps ending."""
        now = time.monotonic()
        for child in self.children:
            if child.log is not None:
                _cut_log(child.log)
            status = child.ended()
            if status is None or child.once:
                continue
            if not child.again_at:
                child.clear()
                if now - child.started > SETTLED_SECONDS:
                    child.pause = FIRST_PAUSE_SECONDS
                child.again_at = now + child.pause
                self.say(
                    f"The {child.name} ended ({_reason(status)}); starting it again. "
                    f"Its log: {child.log}"
                )
                child.pause = min(2 * child.pause, LONGEST_PAUSE_SECONDS)
            elif now >= child.again_at:
                child.again_at = 0.0
                child.start()

    def finish(self) -> None:
        """End all children: ask first, kill after GRACE_SECONDS or at a second request to end."""
        self.ending = True
        for child in self.children:
            child.signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SECONDS
        while any(child.ended() is None for child in self.children):
            if time.monotonic() > deadline or self._impatient:
                break
            time.sleep(CHECK_SECONDS / 2)
        for child in self.children:
            child.clear()
            if child.process is not None:
                child.process.wait()

    _requests = 0

    @property
    def _impatient(self) -> bool:
        return self._requests > 1

    def _asked_to_end(self, number: int, frame: FrameType | None) -> None:
        self._requests += 1
        self.ending = True


def _reason(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _open_log(path: Path) -> int:
    """Open a log for appending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _cut_log(path)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _cut_log(path: Path) -> None:
    """Move what a large log holds to `<name>.1`; programs that have it open go on appending."""
    with suppress(OSError):
        if path.stat().st_size > LOG_BYTES:
            shutil.copyfile(path, path.with_name(f"{path.name}.1"))
            os.truncate(path, 0)


def python(*arguments: str) -> list[str]:
    """The command line that runs this Python with `arguments`."""
    return [sys.executable, *arguments]
