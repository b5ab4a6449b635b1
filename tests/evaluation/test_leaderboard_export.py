"""The leaderboard's exports, read with other people's libraries."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from copy import copy
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from evaluation.leaderboard.website import leaderboard_html
from evaluation.runs.services import run_publish
from releases.models import Release
from tests.evaluation.runs import scored_run
from tests.evaluation.test_leaderboard_pages import STRONG, WEAK
from tests.releases.charts import drawings, specifications
from tests.releases.conftest import World
from tests.releases.toy_release import toy_release

pytestmark = pytest.mark.django_db

QUOTED = "weak, <b>“quoted”</b>"


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    """Two published runs and a private one."""
    made = toy_release(name="Toy, quoted")
    for name, orders in ((QUOTED, WEAK), ("strong", STRONG)):
        run_publish(run=scored_run(made, orders, name=name, parameters=150 + len(name)))
    scored_run(made, WEAK, name="a secret method", owner=world.person("researcher"))
    return made


@pytest.fixture
def board(release: Release, world: World) -> Callable[[str], str]:
    """`board("csv")` is the text of an export as others than its owner have it."""

    def fetch(extension: str) -> str:
        answer = world.client("reviewer").get(f"/releases/{release.pk}/leaderboard.{extension}")
        name = f"toy-quoted-v1-leaderboard.{extension}"
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        text = answer.content.decode()
        assert "a secret method" not in text
        return text

    return fetch


def test_pandas_reads_the_csv(board):
    table = pd.read_csv(io.StringIO(board("csv")))
    own = table[(table["name"] == QUOTED) & (table["split"] == "test")]
    whole = own[own["subset"] == "all"].iloc[0]
    assert whole["AP@50"] == pytest.approx(1 / 6)
    assert whole["queries"] == 2
    assert 0 <= whole["AP@50_low"] <= whole["AP@50"] <= whole["AP@50_high"] <= 1
    by_subset = dict(zip(own["subset"], own["AP@50"], strict=True))
    assert by_subset["supercategory:Context"] == pytest.approx(1 / 3)
    assert by_subset["category:Species ID"] == 0
    assert set(table["split"]) == {"test", "val", "both"}
    assert whole["parameters"] == 150 + len(QUOTED)
    best = (table["kind"] == "best").to_list()
    assert best == sorted(best)
    assert any(best)


def test_no_text_of_the_csv_is_taken_for_a_formula(release, board):
    run = scored_run(release, WEAK, name='=HYPERLINK("x")', training_data="@SUM(1)")
    run_publish(run=run)
    table = pd.read_csv(io.StringIO(board("csv")))
    assert '\'=HYPERLINK("x")' in set(table["name"])
    assert set(table["training_data"].dropna()) == {"'@SUM(1)"}
    assert '\'=HYPERLINK("x")' in set(table["first_stage"].dropna())


def test_json_tells_runs_with_their_scores(board):
    shown = json.loads(board("json"))
    assert (shown["release"], shown["version"]) == ("Toy, quoted", 1)
    runs = {run["name"]: run for run in shown["tasks"]["full"]["runs"]}
    strong = runs["strong"]
    assert strong["scores"]["test"]["all"]["measures"]["AP@50"] == 1
    assert strong["scores"]["test"]["all"]["intervals"]["AP@50"] == [1, 1]
    assert strong["groups"]["test"] == "a"
    assert set(runs) == {QUOTED, "strong"}
    best = shown["tasks"]["full"]["best_possible"]
    assert {one["kind"] for one in best} == {"best"}
    assert "groups" not in best[0]
    assert best[0]["scores"]["test"]["all"]["queries"] == 2
    assert shown["tasks"]["rerank"]["runs"] == []


class Addresses(HTMLParser):
    """What a page would fetch, and its texts."""

    def __init__(self):
        super().__init__()
        self.fetched = []
        self.links = []
        self.ids = set()
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        shown = dict(attributes)
        self.ids.add(shown.get("id"))
        if tag == "a":
            self.links.append(shown["href"])
        else:
            self.fetched += [shown[name] for name in ("src", "href", "action") if shown.get(name)]


def test_the_web_page_stands_alone(board):
    text = board("html")
    page = Addresses()
    page.feed(text)
    assert page.fetched == ["data:,"]
    # But for the library that draws the charts.
    assert not re.search(r"@import|url\(", re.sub(r"<script>.*?</script>", "", text, flags=re.S))
    assert "weak, &lt;b&gt;“quoted”&lt;/b&gt;" in text
    assert {"style", "script", "table"} <= set(page.tags)
    assert page.tags.count("script") == 2 + len(specifications(text))
    assert len(drawings(text)) >= 3
    assert "/releases/" not in text


@pytest.fixture
def website(release: Release, tmp_path: Path) -> dict[str, str]:
    """The texts of the files that the command writes, by name."""
    call_command("export_board", str(release), str(tmp_path), verbosity=0)
    return {path.name: path.read_text() for path in tmp_path.iterdir()}


def test_the_website_is_a_folder_whose_links_stay_in_it(website, board):
    page = Addresses()
    page.feed(website["index.html"])
    assert set(page.fetched) == {"data:,", "board.css", "board.js", "vega.js"}
    sections = {f"#full-{split}" for split in ("test", "val")}
    assert set(page.links) == sections | {"leaderboard.csv", "leaderboard.json"}
    assert {link[1:] for link in sections} <= page.ids
    assert not re.search(r"@import|url\(|csrf|/login", website["index.html"] + website["board.css"])
    assert {*page.fetched, *page.links} - sections - {"data:,"} == website.keys() - {"index.html"}
    for kind in ("csv", "json"):
        assert website[f"leaderboard.{kind}"] == board(kind)
    assert not [name for name, text in website.items() if "a secret method" in text]


def test_the_archive_of_the_website_holds_what_the_command_writes(website, release, world):
    address = f"/releases/{release.pk}/leaderboard.zip"
    for answer in (
        world.client("researcher").get(address),
        world.api("researcher").get(f"/api{address}"),
    ):
        archive = zipfile.ZipFile(io.BytesIO(answer.content))
        root = "toy-quoted-v1-leaderboard/"
        assert website == {
            name.removeprefix(root): archive.read(name).decode() for name in archive.namelist()
        }


def test_the_command_replaces_a_website_alone(release, tmp_path):
    folder = tmp_path / "board"
    for options in ([], ["--force"]):
        call_command("export_board", str(release), str(folder), *options, verbosity=0)
    with pytest.raises(CommandError, match="is not empty"):
        call_command("export_board", str(release), str(folder))
    (folder / "mine.txt").touch()
    with pytest.raises(CommandError, match=r"holds 'mine\.txt'"):
        call_command("export_board", str(release), str(folder), "--force")
    with pytest.raises(CommandError, match="There is no release"):
        call_command("export_board", "Nothing", str(tmp_path / "other"))


def test_the_page_names_the_files_that_its_readers_may_have(release, settings):
    settings.SITE_URL = "https://annotate.example.org/"
    release = copy(release)
    whole, opened = ({"name": f"{name}.zip", "sha256": name * 8} for name in ("whole", "open"))
    release.archive = {**whole, "open": opened}
    release.file_list = [{"name": "attribution.csv"}]
    page = Addresses()
    page.feed(leaderboard_html(release))
    address = f"https://annotate.example.org/releases/{release.pk}/"
    assert {address, f"{address}files/attribution.csv"} <= set(page.links)
    for hidden, shown in ((False, whole), (True, opened)):
        release.test_labels = "hidden" if hidden else "public"
        text = leaderboard_html(release)
        assert [one["sha256"] in text for one in (whole, opened)] == [not hidden, hidden]
        assert shown["name"] in text
        assert ("relevant images" in text.split("</h1>")[1].split("</p>")[0]) is not hidden


def test_the_api_gives_the_same(release, board, world):
    address = f"/api/releases/{release.pk}/leaderboard"
    for extension in ("csv", "json", "html", "tex"):
        answer = world.api("researcher").get(f"{address}.{extension}")
        assert answer.content.decode() == board(extension)
    assert world.api("researcher").get(f"{address}.xlsx").status_code == 404
    assert world.api("annotator").get(f"{address}.csv").status_code == 403


def test_latex_tables_are_those_of_the_page(release, board):
    run_publish(run=scored_run(release, WEAK, name=r"50 % & #1_\a{b}~^", parameters=None))
    text = board("tex")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in rows} == {5}
    assert rows[0].startswith(r"Method & Params (M) & mAP@50 & nDCG@50 & MRR@50 & Judged@10")
    assert r"strong & 156 & \textbf{100.0} & \textbf{100.0} & \textbf{1.00} & " in rows[1]
    odd = r"50 \% \& \#1\_\textbackslash{}a\{b\}\textasciitilde{}\textasciicircum{} & – & 16.7"
    assert any(line.startswith(odd) for line in rows)
