"""Celery messages as files, for a broker that needs no server.

kombu's file-system transport, with its weak spots mended: it writes messages and binding tables in
place, where a reader can meet half of one, and it takes messages by moving them to the machine's
shared temporary folder. Here every file is written aside and renamed, and a message is taken by
renaming it within the folder. A worker that is killed with a message in hand loses that message;
the database still holds the work, and the next sweep says it again.
"""

import fcntl
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem, virtual
from kombu.transport.filesystem import exchange_queue_t
from kombu.utils.json import dumps, loads

from core.files import whole_file

logger = logging.getLogger(__name__)

Table = list[exchange_queue_t]
ABANDONED_SECONDS = 600


class Channel(filesystem.Channel):
    """One folder of messages (`*.<queue>.msg`), with the exchanges' tables in `exchanges/`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.folder = Path(self.transport_options["folder"])
        self.control_folder.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()

    @property
    def control_folder(self) -> Path:
        """The folder of the exchanges' tables."""
        return Path(self.transport_options["folder"]) / "exchanges"

    def get_table(self, exchange: str) -> Table:
        """The queues bound to `exchange`."""
        try:
            rows = loads(self._exchange_file(exchange).read_text())
        except FileNotFoundError:
            return []
        return [exchange_queue_t(*row) for row in rows]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        binding = exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change_table(exchange, lambda rows: rows if binding in rows else [binding, *rows])

    def _delete(
        self, queue: str, exchange: str, routing_key: str, pattern: str, *args: Any, **kwargs: Any
    ) -> None:
        self._purge(queue)
        binding = exchange_queue_t(routing_key or "", pattern or "", queue or "")
        self._change_table(exchange, lambda rows: [row for row in rows if row != binding])

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override]
        name = f"{time.time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        write_whole(self.folder / name, dumps(payload))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        for path in self._messages(queue):
            taken = path.with_name(f"{path.name}.taken")
            try:
                path.rename(taken)
            except FileNotFoundError:
                continue
            text = taken.read_text()
            taken.unlink()
            try:
                return loads(text)
            except ValueError:
                logger.warning("Left out a message that is not JSON: %s", path.name)
        raise Empty

    def _purge(self, queue: str) -> int:
        count = 0
        for path in self._messages(queue):
            with suppress(FileNotFoundError):
                path.unlink()
                count += 1
        return count

    def _size(self, queue: str) -> int:
        return len(self._messages(queue))

    def _messages(self, queue: str) -> list[Path]:
        """The queue's messages, oldest first."""
        ending = f"{queue}.msg"
        found = os.listdir(self.folder)
        names = sorted(name for name in found if name.partition(".")[2] == ending)
        return [self.folder / name for name in names]

    def _change_table(self, exchange: str, change: Callable[[Table], Table]) -> None:
        file = self._exchange_file(exchange)
        with _locked(self.control_folder / "lock"):
            before = self.get_table(exchange)
            after = change(before)
            if after != before or not file.exists():
                write_whole(file, dumps(after))

    def _remove_abandoned(self) -> None:
        """Remove what killed processes left half written or half read."""
        old = time.time() - ABANDONED_SECONDS
        for folder in (self.folder, self.control_folder):
            for path in (*folder.glob("*.draft"), *folder.glob("*.taken")):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < old:
                        path.unlink()


class Transport(filesystem.Transport):
    """A transport whose messages are in the folder of the transport option `folder`."""

    Channel = Channel
    driver_type = "files"
    driver_name = "files"

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        # What is bound stands in the folder's own tables; kombu's class shares it between folders.
        self.state = virtual.BrokerState()


def write_whole(path: Path, text: str) -> None:
    """Write `path` so that a reader finds the old content or the new, never a part."""
    with whole_file(path, durable=False) as file:
        file.write(text.encode())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
