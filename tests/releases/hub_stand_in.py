"""A stand-in of the Hugging Face Hub: the HTTP calls by which huggingface_hub makes a data set,
commits to it, lists it and fetches it, and those that store large files, by hf_xet
(https://huggingface.co/docs/xet) or, without it, as Git LFS does."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from huggingface_hub.utils.sha import git_hash

LARGE = (".parquet", ".zip", ".jpg")
"""What the Hub stores as large files, whatever their size."""
_WITH_CHECKS, _WITH_SHA256 = 1 << 31, 1 << 30
_RECORD = 48


@dataclass
class Hub:
    """What the Hub holds and what it was sent."""

    address: str = ""
    private: dict[str, bool] = field(default_factory=dict)
    """Name -> whether it is private, of each data set."""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Name -> its files."""
    requests: list[str] = field(default_factory=list)
    committed: list[str] = field(default_factory=list)
    """The name of each file of each commit."""
    received: list[bytes] = field(default_factory=list)
    """The body of each request that was carried out, and what large files were sent."""
    status: int = 0
    """Instead of any other answer."""
    steps_left: int = 1000
    """Commits, and files by LFS; then each connection is cut."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    large: dict[str, bytes] = field(default_factory=dict)
    """SHA-256 -> bytes."""
    chunks: dict[str, list[bytes]] = field(default_factory=dict)
    """Hash of a block of chunks -> the chunks."""

    def take_block(self, name: str, body: bytes) -> None:
        """Store a block of chunks: each a header of 8 bytes and its bytes, compressed or not."""
        chunks, place = [], 0
        while place + 8 <= len(body) and not body.startswith(b"XETBLOB", place):
            stored = int.from_bytes(body[place + 1 : place + 4], "little")
            size = int.from_bytes(body[place + 5 : place + 8], "little")
            chunk, scheme = body[place + 8 : place + 8 + stored], body[place + 4]
            if scheme:
                chunk = pa.decompress(chunk, size, "lz4", asbytes=True)
            if scheme == 2:
                # Bytes by their place in groups of 4.
                ends = [0]
                for part in range(4):
                    ends.append(ends[-1] + (size - part + 3) // 4)
                whole = bytearray(size)
                for part in range(4):
                    whole[part::4] = chunk[ends[part] : ends[part + 1]]
                chunk = bytes(whole)
            chunks.append(chunk)
            place += 8 + stored
        self.chunks[name] = chunks
        self.received.append(b"".join(chunks))

    def take_shard(self, body: bytes) -> None:
        """Put the files together that a shard describes."""
        place = _RECORD
        while body[place : place + 32] != b"\xff" * 32:
            flags, count = (
                int.from_bytes(body[place + at : place + at + 4], "little") for at in (32, 36)
            )
            content = b""
            for number in range(count):
                entry = body[place + _RECORD * (1 + number) :][:_RECORD]
                first, last = (int.from_bytes(entry[at : at + 4], "little") for at in (40, 44))
                content += b"".join(self.chunks[_hash(entry)][first:last])
            place += _RECORD * (1 + count * (2 if flags & _WITH_CHECKS else 1))
            if flags & _WITH_SHA256:
                sha256 = _hash(body[place:])
                assert sha256 == hashlib.sha256(content).hexdigest()
                self.large[sha256] = content
                place += _RECORD


def _hash(data: bytes) -> str:
    return "".join(f"{int.from_bytes(data[at : at + 8], 'little'):016x}" for at in range(0, 32, 8))


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        hub, address = self.hub, urlsplit(self.path)
        parts = unquote(address.path).strip("/").split("/")
        hub.requests.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if hub.status:
            parts = []
        match parts:
            case []:
                self._json({"error": "no"}, status=hub.status)
            case ["api", "validate-yaml"]:
                assert json.loads(body)["content"].startswith("---\n")
                self._json({"errors": [], "warnings": []})
            case ["api", "repos", "create"]:
                asked = json.loads(body)
                name = f"{asked['organization']}/{asked['name']}"
                there = name in hub.private
                hub.private.setdefault(name, asked["visibility"] == "private")
                hub.files.setdefault(name, {".gitattributes": b"*.parquet filter=lfs\n"})
                answer = {"url": f"{hub.address}/datasets/{name}"}
                self._json(answer, status=409 if there else 200)
            case ["api", "datasets", org, name, "preupload", "main"]:
                files = hub.files[f"{org}/{name}"]
                self._json({"files": [self._mode(one["path"], files)
                                      for one in json.loads(body)["files"]]})  # fmt: skip
            case ["api", "datasets", org, name, "xet-write-token", "main"]:
                token = {"accessToken": "t", "exp": int(time.time()) + 3600, "casUrl": hub.address}
                self._json(token)
            case ["v1", "xorbs", _, name]:
                hub.take_block(name, body)
                self._json({"was_inserted": True})
            case ["v1", "shards"]:
                hub.take_shard(body)
                self._json({"result": 1})
            case ["api", "datasets", org, name, "commit", "main"]:
                if self._may_go_on(body):
                    self._commit(hub.files[f"{org}/{name}"], body)
                    url = f"{hub.address}/datasets/{org}/{name}/commit/1"
                    self._json({"commitUrl": url, "commitOid": "1" * 40, "success": True})
            case ["datasets", _, _, "info", "lfs", "objects", "batch"]:
                objects = json.loads(body)["objects"]
                for one in objects:
                    if one["oid"] not in hub.large:
                        one["actions"] = {"upload": {"href": f"{hub.address}/lfs/{one['oid']}"}}
                self._json({"objects": objects})
            case ["lfs", sha256]:
                if self._may_go_on(body):
                    assert sha256 == hashlib.sha256(body).hexdigest()
                    hub.large[sha256] = body
                    self._json({})
            case ["api", "datasets", org, name, "tree", *_] if f"{org}/{name}" in hub.files:
                self._json([_listed(one) for one in sorted(hub.files[f"{org}/{name}"].items())])
            case ["api", "datasets", org, name, *_] if f"{org}/{name}" in hub.files:
                private = hub.private[f"{org}/{name}"]
                self._json({"id": f"{org}/{name}", "sha": "1" * 40, "private": private})
            case ["datasets", org, name, "resolve", _, *path]:
                self._bytes(hub.files[f"{org}/{name}"]["/".join(path)])
            case _:
                self._json({"error": "not found"}, status=404)

    do_HEAD = do_POST = do_PUT = do_GET

    def _may_go_on(self, body: bytes) -> bool:
        """Count a step, or cut the connection."""
        with self.hub.lock:
            may = self.hub.steps_left > 0
            self.hub.steps_left -= 1
            self.hub.received += [body] * may
        if not may:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        return may

    def _mode(self, path: str, files: dict[str, bytes]) -> dict[str, Any]:
        large = path.endswith(LARGE)
        there = {"oid": _oid(path, files[path])} if path in files else {}
        mode = "lfs" if large else "regular"
        return {"path": path, "uploadMode": mode, "shouldIgnore": False, **there}

    def _commit(self, files: dict[str, bytes], body: bytes) -> None:
        for line in body.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            match operation["key"]:
                case "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                    self.hub.received.append(files[value["path"]])
                case "lfsFile":
                    files[value["path"]] = self.hub.large[value["oid"]]
                case "deletedFile":
                    del files[value["path"]]
                    continue
                case _:
                    continue
            self.hub.committed.append(value["path"])

    def _json(self, content: Any, status: int = 200) -> None:
        self._bytes(json.dumps(content).encode(), status, "application/json")

    def _bytes(self, content: bytes, status: int = 200, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Repo-Commit", "1" * 40)
        self.send_header("ETag", f'"{git_hash(content)}"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _oid(path: str, content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() if path.endswith(LARGE) else git_hash(content)


def _listed(file: tuple[str, bytes]) -> dict[str, Any]:
    path, content = file
    listed = {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
    if path.endswith(LARGE):
        listed["lfs"] = {"oid": _oid(path, content), "size": len(content), "pointerSize": 130}
    return listed


@contextmanager
def serving() -> Iterator[Hub]:
    """Serve until the block ends."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
