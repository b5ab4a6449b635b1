"""Images of a corpus, fetched from a server with faults."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image

from curation.fetching import FETCHED, Pace, fetch
from curation.tables import CurationRefused
from tests import ROOT
from tests.processes import wait_for


def jpeg(width: int, height: int, **options: object) -> bytes:
    out = io.BytesIO()
    Image.effect_noise((width, height), 80).convert("RGB").save(out, "JPEG", **options)
    return out.getvalue()


class Server(ThreadingHTTPServer):
    """Answers `/NAME`; `/busy` twice with 503, `/cut` with half of the bytes, `/page` with HTML."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.held = threading.Event()
        self.held.set()
        exif = Image.Exif()
        exif[0x0112] = 6  # turned by 90°
        exif.get_ifd(0x8825)[1] = "N"
        self.image = jpeg(1000, 600, exif=exif)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked[self.path] += 1
        self.server.agents.add(self.headers["User-Agent"])
        if name == "held":
            self.server.held.wait(60)
        if name == "busy" and self.server.asked[self.path] < 3:
            self.send_response(503)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if name == "gone":
            self.send_error(404)
            return
        data = b"<p>Log in</p>" if name == "page" else self.server.image
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if name == "cut" else data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.held.set()
        running.shutdown()


def corpus(folder: Path, urls: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "images.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file_name", "url", "split", "photo_id", "observation_id"])
        rows.writerows(
            [f"train/{name}.jpg", url, "train", name, name] for name, url in urls.items()
        )
    return folder


def table(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["file_name"]: row for row in csv.DictReader(file)}


def test_images_come_upright_reduced_and_bare_and_faults_are_listed(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.jpg").write_bytes(jpeg(300, 200))
    photos = f"{server.address}/inaturalist-open-data/photos"
    names = {name: f"{server.address}/{name}" for name in ("good", "busy", "cut", "page", "gone")}
    names |= {
        "sized": f"{photos}/12/original.jpg",
        "local": str(tmp_path / "own.jpg"),
        "away": str(tmp_path / "none.jpg"),
        "odd": "ftp://example.org/x.jpg",
        "none": "",
        "huge": str(tmp_path / "huge.png"),
    }
    Image.new("1", (20_000, 10_000)).save(tmp_path / "huge.png")
    # As where images are imported too.
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    folder = corpus(tmp_path / "corpus", names)
    seen: list[tuple[int, int]] = []
    found = fetch(folder, longest_side=500, per_second=1000, progress=lambda *at: seen.append(at))
    assert (found.present, found.before) == (4, 0)
    assert max(seen) == (11, 11)
    there = table(folder / FETCHED)
    assert sorted(there) == [f"train/{one}.jpg" for one in ("busy", "good", "local", "sized")]
    for name, row in there.items():
        data = (folder / name).read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            assert image.size == (int(row["width"]), int(row["height"]))
            assert not image.getexif()
        assert (hashlib.sha256(data).hexdigest(), str(len(data))) == (row["sha256"], row["bytes"])
    assert there["train/good.jpg"]["width"] == "300"
    assert there["train/good.jpg"]["height"] == "500"
    assert there["train/local.jpg"]["width"] == "300"
    assert server.asked["/busy"] == 3
    assert server.asked["/inaturalist-open-data/photos/12/medium.jpg"] == 1
    assert server.agents == {"inquire-annotator (benchmark curation)"}
    failed = {name: row["reason"] for name, row in table(folder / "failed.csv").items()}
    assert failed == {
        "train/cut.jpg": "no connection, or broken off",
        "train/page.jpg": "not an image that can be read",
        "train/gone.jpg": "answered 404",
        "train/away.jpg": "no such file",
        "train/odd.jpg": "not an address that can be fetched",
        "train/none.jpg": "not an address that can be fetched",
        "train/huge.jpg": "more than 178 million pixels",
    }
    assert not list(folder.rglob("*.part"))
    # A second call asks for what failed alone; an image that is gone or changed comes again.
    (folder / "train/good.jpg").write_bytes(b"half")
    before = server.asked.copy()
    assert fetch(folder, longest_side=500, per_second=1000).before == 3
    assert set(server.asked - before) == {"/good", "/cut", "/page", "/gone"}
    with pytest.raises(CurationRefused, match="run the curation first"):
        fetch(tmp_path, longest_side=500)


def test_a_killed_fetch_is_continued(tmp_path: Path, server: Server) -> None:
    server.held.clear()
    names = {f"n{n}": f"{server.address}/n{n}" for n in range(5)}
    names["held"] = f"{server.address}/held"
    folder = corpus(tmp_path / "corpus", names)
    (folder / "curation.json").write_text('{"longest_side": 500}')
    command = [sys.executable, "manage.py", "curate", "fetch", str(folder), "--per-second", "500"]
    child = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        wait_for(lambda: (folder / FETCHED).is_file() and len(table(folder / FETCHED)) == 5)
        wait_for(lambda: server.asked["/held"] == 1)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    server.held.set()
    with (folder / FETCHED).open("a") as log:
        log.write("train/n9.jpg,cut sho")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "6 images are there, of these 5 from before." in done.stdout
    assert sorted(table(folder / FETCHED)) == sorted(f"train/{name}.jpg" for name in names)
    assert [count for path, count in server.asked.items() if path.startswith("/n")] == [1] * 5


def test_a_host_is_asked_at_the_given_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("curation.fetching.time.sleep", waits.append)
    pace = Pace(4)
    for host in ("one", "one", "one", "another"):
        pace.wait(host)
    assert [round(one, 1) for one in waits] == [0, 0.2, 0.5, 0]
