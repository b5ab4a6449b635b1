"""The leaderboard's page: figures, choices, roles and hidden runs."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from django.test import Client

from core.jobs.models import Job
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.baselines import BASELINES_JOB
from evaluation.runs.models import Run, RunScores
from evaluation.runs.services import run_publish, run_score
from releases.models import Release
from tests.evaluation.runs import scored_run
from tests.releases.conftest import World
from tests.releases.toy_release import toy_release

pytestmark = pytest.mark.django_db

# AP@50 on the test split's queries 2 and 3: 0 and 1/3; 1 and 1.
WEAK = {1: [2, 1, 4], 2: [5, 6], 3: [3, 4, 1, 2], 4: [1]}
STRONG = {1: [1, 4], 2: [2], 3: [3, 5, 6]}
PUBLIC = {"weak & long"}


class Board(NamedTuple):
    """A release with a published run and a private one of the researcher."""

    world: World
    release: Release
    weak: Run
    strong: Run

    @property
    def address(self) -> str:
        return f"/releases/{self.release.pk}/leaderboard/"

    def page(self, query: str = "", role: str = "admin") -> Any:
        return self.world.client(role).get(self.address + query)

    def text(self, query: str = "", role: str = "admin") -> str:
        content: str = self.page(query, role).content.decode()
        return content

    def table(self, query: str = "", role: str = "admin") -> Any:
        return self.page(query, role).context["table"]

    def rows(self, query: str = "", role: str = "admin") -> dict[str, list[str]]:
        """Name -> the texts of its figures."""
        rows = self.table(query, role).rows
        return {row.run.name: [figure.text for figure in row.figures] for row in rows}


@pytest.fixture(scope="module")
def board(world: World) -> Board:
    release = toy_release()
    weak = scored_run(release, WEAK, name="weak & long", parameters=150, open_weights=True)
    strong = scored_run(release, STRONG, name="strong", owner=world.person("researcher"))
    return Board(world, release, run_publish(run=weak), strong)


def test_figures_are_those_of_the_paper_s_table(board: Board) -> None:
    figures, table = board.rows(), board.table()
    assert figures["weak & long"][:3] == ["16.7", "23.5", "0.50"]
    assert figures["strong"][:3] == ["100.0", "100.0", "1.00"]
    titles = ["mAP@50", "nDCG@50", "MRR@50", "Judged@10"]
    assert [header.title for header in table.headers] == titles
    assert table.queries == 2
    # Two queries can't tell anything apart.
    assert {row.run.name: (row.place, row.groups) for row in table.rows} == {
        "strong": (1, "a"),
        "weak & long": (2, "a"),
    }
    assert board.rows("?split=val")["weak & long"][:3] == ["58.3", "69.3", "0.50"]
    text = board.text()
    assert "weak &amp; long" in text
    # A chart against what one run states would have one point.
    assert "against parameters" not in text


def test_columns_are_chosen_in_the_address(board: Board) -> None:
    chosen = "?column=P@10&column=AP@50"
    table = board.table(chosen)
    assert [header.key for header in table.headers] == ["P@10", "AP@50"]
    page = board.text(chosen)
    # What leads on from there keeps them.
    assert "column=P%4010&amp;column=AP%4050" in page
    assert '<input type="hidden" name="column" value="P@10">' in page
    assert board.page("?column=Luck@5").status_code == 404


def test_runs_are_filtered_by_method_size_and_weights(board: Board) -> None:
    names, all_runs = {"weak & long"}, {"weak & long", "strong"}
    for query, shown in (
        ("?method=upload", all_runs),
        ("?method=model", set()),
        ("?size=medium", names),
        ("?size=large", set()),
        ("?weights=open", names),
        ("?weights=closed", set()),
        ("?size=medium&weights=open", names),
    ):
        assert set(board.rows(query)) == shown, query
    # The place is that among all runs.
    assert [row.place for row in board.table("?size=medium").rows] == [2]
    assert "No run is of this kind" in board.text("?weights=closed")
    assert board.page("?size=gigantic").status_code == 404


def test_no_interval_is_of_one_query(board: Board) -> None:
    rows = board.table("?view=supercategory").rows
    assert all(row.figures[0].interval for row in rows)
    assert not any(figure.interval for row in rows for figure in row.figures[1:])


def test_analyses_are_offered_once_there_are_data(board: Board) -> None:
    path = f"/releases/{board.release.pk}/analysis/"
    researcher = board.world.client("researcher").get(path)
    content = researcher.content.decode()
    assert "Every measure of every run" in content
    assert "Compare two runs" in content
    assert [run.name for run in researcher.context["fusible"]] == ["strong", "weak & long"]
    assert "Fuse runs" not in board.world.client("reviewer").get(path).content.decode()
    assert board.world.client("annotator").get(path).status_code == 403
    assert Client().get(path).url.startswith("/login/")
    empty = f"/releases/{toy_release(version=2).pk}/analysis/"
    content = board.world.client("reviewer").get(empty).content.decode()
    assert "Every measure of every run" not in content


def test_best_possible_re_ranks_have_a_table_of_their_own(board: Board) -> None:
    table = board.table("?sort=RR@50&order=asc")
    assert [row.run.name for row in table.rows] == ["weak & long", "strong"]
    assert {row.run.kind for row in table.bounds.rows} == {"best"}
    assert (len(table.rows), len(table.bounds.rows)) == (2, 4)
    # The same column sorts both; no place and no group are given.
    figures = [row.figures[2].value for row in table.bounds.rows]
    assert figures == sorted(figures)
    assert {(row.place, row.groups) for row in table.bounds.rows} == {(None, "")}
    assert board.text().count("<table") == 2


def test_a_run_of_one_split_is_shown_there_only(board: Board) -> None:
    scored_run(board.release, {1: [1, 4]}, name="val only")
    assert "val only" not in board.rows()
    assert board.rows("?split=val")["val only"][0] == "100.0"
    assert "val only" not in board.rows("?split=both")


def test_subsets_and_other_measures(board: Board) -> None:
    table = board.table("?view=supercategory")
    assert [(one.title, one.queries) for one in table.headers] == [
        ("All queries", 2),
        ("Context", 1),
        ("Species", 1),
    ]
    assert board.rows("?view=supercategory")["weak & long"] == ["16.7", "33.3", "0.0"]
    headers = board.table("?measure=P@1").headers
    assert headers[-1].title == "P@1"
    assert [one.key for one in headers if one.sorted] == ["P@1"]
    assert board.rows("?measure=P@1")["weak & long"][-1] == "50.0"
    assert board.page().context["drawn"] == {board.weak.pk, board.strong.pk}
    assert board.page(f"?run={board.weak.pk}&run=9999").context["drawn"] == {board.weak.pk}


def test_rows_are_sorted_by_links_and_the_header_says_so(board: Board) -> None:
    best_first = ["strong", "weak & long"]
    for query, names in (
        ("", best_first),
        ("?sort=nDCG@50&order=asc", best_first[::-1]),
        ("?sort=name&order=asc", best_first),
        ("?sort=name", best_first[::-1]),
        ("?sort=parameters", best_first[::-1]),
        ("?sort=parameters&order=asc", best_first[::-1]),
    ):
        assert list(board.rows(query)) == names, query
    text = board.text("?sort=nDCG@50&order=asc")
    head = re.search(r'<th[^>]*aria-sort="ascending"[^>]*>.*?</th>', text, re.DOTALL)
    assert head is not None
    assert "nDCG@50" in head[0]


def test_who_sees_which_runs(board: Board) -> None:
    world = board.world
    assert set(board.rows(role="reviewer")) == PUBLIC
    bounds = board.table(role="reviewer").bounds.rows
    assert {row.run.first_stage.name for row in bounds} == PUBLIC
    assert set(board.rows(role="researcher")) == PUBLIC | {"strong"}
    assert "Private: only you and admins see this" in board.text(role="researcher")
    assert "only you" not in board.text()
    assert world.client("researcher").get("/leaderboard/").url == board.address
    for address in (board.address, "/leaderboard/"):
        assert world.client("annotator").get(address).status_code == 403
        assert Client().get(address).url.startswith("/login/")
    assert world.client("admin").get("/releases/999999999/leaderboard/").status_code == 404


def test_who_may_compute_baselines(board: Board) -> None:
    world = board.world
    for role, offered in (("admin", True), ("researcher", False)):
        text = board.text(role=role)
        assert "Submit a run" in text
        assert ("Compute baselines" in text) == offered
    assert world.client("researcher").post(board.address).status_code == 403
    assert not Job.objects.filter(kind=BASELINES_JOB).exists()
    assert world.client("admin").post(board.address).status_code == 302
    assert Job.objects.get(kind=BASELINES_JOB).params == {"release": board.release.pk}
    assert "Baselines of Toy v1" in board.text()
    # Others may not ask for the job, so nothing on their page does.
    others = board.text("?task=rerank", role="researcher")
    assert "data-job" not in others
    assert "The baselines are being computed." in others


def test_a_release_without_runs_or_files_says_so_and_names_those_with_runs(board: Board) -> None:
    newer, world = toy_release(version=2), board.world
    address = f"/releases/{newer.pk}/leaderboard/"
    shown = world.client("reviewer").get(address).content.decode()
    assert "Toy v2 has no run yet" in shown
    assert f'Releases with runs: <a href="{board.address}">Toy v1</a>' in shown
    admin = world.client("admin")
    assert "“Compute baselines” adds" in admin.get(address).content.decode()
    assert admin.get(f"{address}?task=rerank").status_code == 200
    assert world.client("reviewer").get("/leaderboard/").url == board.address
    # A private run of somebody else doesn't make a board.
    scored_run(newer, STRONG, name="private", owner=world.person("researcher"))
    assert world.client("reviewer").get("/leaderboard/").url == board.address
    assert world.client("researcher").get("/leaderboard/").url == address
    lost = toy_release("Lost")
    for path in lost.snapshot_directory.iterdir():
        path.unlink()
    shown = admin.get(f"/releases/{lost.pk}/leaderboard/").content.decode()
    assert "No runs can be scored on this release" in shown


def test_runs_scored_on_two_versions_stand_side_by_side(board: Board) -> None:
    second = toy_release(version=2, previous=board.release)
    run_score(run=board.weak, release=second)
    rows = board.table(f"?beside={second.pk}").rows
    assert {row.run.name: row.beside for row in rows} == {"weak & long": "16.7", "strong": ""}
    assert "mAP@50 on v2" in board.text(f"?beside={second.pk}")
    # Not for who doesn't see the labels of that version.
    hidden = toy_release(version=3, previous=second, test_labels="hidden")
    run_score(run=board.weak, release=hidden)
    address = f"?beside={hidden.pk}"
    assert "mAP@50 on v3" in board.text(address, "reviewer")
    assert "on v3" not in board.text(address, "researcher")
    assert "mAP@50 on v3" in board.text(f"{address}&split=val", "researcher")


def test_two_stage_runs_stand_under_their_first_stage_when_requested(board: Board) -> None:
    kind = "rerank_embedding"
    second, third = (
        scored_run(board.release, order, name=name, kind=kind, first_stage=board.weak,
                   rerank_depth=3)
        for name, order in (("second", STRONG), ("third", WEAK))
    )  # fmt: skip
    Run.objects.filter(pk=third.pk).update(first_stage=second)
    table = board.table("?stages=under")
    families = [[row.run.name for row in family] for family in table.families]
    assert families == [["strong"], ["weak & long", "second", "third"]]
    assert (len(board.table().families), len(board.table().rows)) == (1, 4)


def test_scores_that_change_are_shown_at_once(board: Board) -> None:
    admin = board.world.person("admin")
    before = board_runs(board.release, "full", admin)
    score = RunScores.objects.get(run=board.weak)
    score.measures = {**score.measures, "AP@50": [1.0, 0.5, 0.5]}
    score.save()
    assert board_runs(board.release, "full", admin).fingerprint != before.fingerprint
    assert board.rows()["weak & long"][0] == "50.0"


def test_a_page_asks_the_database_no_more_often_for_more_runs(
    board: Board, django_assert_max_num_queries: Any
) -> None:
    client = board.world.client("admin")
    client.get(board.address)
    with django_assert_max_num_queries(20):
        client.get(board.address)
    for number in range(3):
        scored_run(board.release, WEAK, name=f"more {number}")
    # Each with its best possible re-ranks: nine rows whose figures were never read.
    with django_assert_max_num_queries(20):
        client.get(board.address)
