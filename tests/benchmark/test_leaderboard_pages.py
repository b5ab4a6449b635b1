"""The leaderboard's page: figures, choices, roles and hidden runs."""

from __future__ import annotations

import re

import pytest

from benchmark.leaderboard.selectors import board_runs
from benchmark.runs.baselines import BASELINES_JOB
from benchmark.runs.models import RunScores
from benchmark.runs.services import run_publish, run_score
from core.jobs.models import Job
from tests.benchmark.runs import scored_run
from tests.benchmark.toy_release import toy_release
from tests.conftest import client_of

# AP@50 on the test split's queries 2 and 3: 0 and 1/3; 1 and 1.
WEAK = {1: [2, 1, 4], 2: [5, 6], 3: [3, 4, 1, 2], 4: [1]}
STRONG = {1: [1, 4], 2: [2], 3: [3, 5, 6]}


@pytest.fixture
def release(db, var_dir):
    return toy_release()


@pytest.fixture
def weak(release):
    run = scored_run(release, WEAK, name="weak & long", parameters=150, open_weights=True)
    return run_publish(run=run)


@pytest.fixture
def strong(release, researcher):
    return scored_run(release, STRONG, name="strong", owner=researcher)


def page(user, release, query=""):
    return client_of(user).get(f"/releases/{release.pk}/leaderboard/{query}")


def rows(response):
    """Name -> the texts of its figures."""
    shown = response.context["shown"]
    return {line.run.name: [figure.text for figure in line.figures] for line in shown.lines}


def test_figures_are_those_of_the_paper_s_table(release, weak, strong, admin):
    response = page(admin, release)
    assert response.status_code == 200
    figures = rows(response)
    assert figures["weak & long"][:3] == ["16.7", "23.5", "0.50"]
    assert figures["strong"][:3] == ["100.0", "100.0", "1.00"]
    titles = [header.title for header in response.context["shown"].headers]
    coverage = ["Judged@10", "Judged@50", "bpref", "RBP residual"]
    assert titles == ["mAP@50", "nDCG@50", "MRR@50", *coverage]
    assert response.context["shown"].queries == 2
    places = {line.run.name: line.place for line in response.context["shown"].lines}
    assert (places["strong"], places["weak & long"]) == (1, 2)
    assert "weak &amp; long" in response.content.decode()


def test_best_possible_re_ranks_have_a_table_of_their_own(release, weak, strong, admin):
    shown = page(admin, release, "?sort=RR@50&order=asc").context["shown"]
    assert [line.run.name for line in shown.lines] == ["weak & long", "strong"]
    assert {line.run.kind for line in shown.bounds.lines} == {"best"}
    assert (shown.runs, shown.bounds.runs) == (2, 4)
    assert shown.bounds.headers == shown.headers
    # The same column sorts both; no place and no group are given.
    figures = [line.figures[2].value for line in shown.bounds.lines]
    assert figures == sorted(figures)
    assert {(line.place, line.groups) for line in shown.bounds.lines} == {(None, "")}
    text = page(admin, release).content.decode()
    assert text.count("<table") == 2
    assert "Best possible re-ranks" in text.partition("<table")[2].partition("<table")[0]
    scored = page(admin, release, "?split=val").context["shown"]
    assert (scored.runs, scored.bounds.runs) == (2, 4)


def test_the_validation_split_has_its_own_figures(release, weak, admin):
    assert rows(page(admin, release, "?split=val"))["weak & long"][:3] == ["58.3", "69.3", "0.50"]


def test_a_run_of_one_split_is_shown_there_only(release, weak, admin):
    scored_run(release, {1: [1, 4]}, name="val only")
    assert "val only" not in rows(page(admin, release))
    assert rows(page(admin, release, "?split=val"))["val only"][0] == "100.0"
    assert "val only" not in rows(page(admin, release, "?split=both"))


def test_subsets_with_their_number_of_queries(release, weak, admin):
    response = page(admin, release, "?view=supercategory")
    shown = response.context["shown"]
    assert [(one.title, one.queries) for one in shown.headers] == [
        ("All queries", 2),
        ("Context", 1),
        ("Species", 1),
    ]
    assert rows(response)["weak & long"] == ["16.7", "33.3", "0.0"]


def test_another_measure_is_shown_beside_the_paper_s(release, weak, admin):
    response = page(admin, release, "?measure=P@1")
    headers = response.context["shown"].headers
    assert headers[-1].title == "P@1"
    assert [one.key for one in headers if one.sorted] == ["P@1"]
    assert rows(response)["weak & long"][-1] == "50.0"


def test_rows_are_sorted_by_links_and_the_header_says_so(release, weak, strong, admin):
    def names(query):
        response = page(admin, release, query)
        own = [n for n in rows(response) if not n.startswith("Best")]
        return own, response.content.decode()

    assert names("")[0] == ["strong", "weak & long"]
    rising, text = names("?sort=nDCG@50&order=asc")
    assert rising == ["weak & long", "strong"]
    head = re.search(r'<th[^>]*aria-sort="ascending"[^>]*>.*?</th>', text, re.DOTALL)
    assert head is not None
    assert "nDCG@50" in head[0]
    assert names("?sort=name&order=asc")[0] == ["strong", "weak & long"]
    assert names("?sort=name")[0] == ["weak & long", "strong"]
    assert names("?sort=parameters")[0] == ["weak & long", "strong"]


def test_who_sees_which_runs(release, weak, strong, admin, reviewer, researcher, annotator):
    public = {"weak & long"}
    assert set(rows(page(reviewer, release))) == public
    bounds = page(reviewer, release).context["shown"].bounds.lines
    assert {line.run.first_stage.name for line in bounds} == public
    assert client_of(annotator).get(f"/releases/{release.pk}/leaderboard/").status_code == 403
    assert set(rows(page(researcher, release))) == public | {"strong"}
    text = page(researcher, release).content.decode()
    assert "Private: only you and admins see this" in text
    assert "only you" not in page(admin, release).content.decode()
    assert client_of(annotator).get("/leaderboard/").status_code == 403
    assert client_of(researcher).get("/leaderboard/").url == f"/releases/{release.pk}/leaderboard/"


def test_nobody_sees_it_without_a_log_in(release, client):
    response = client.get(f"/releases/{release.pk}/leaderboard/")
    assert (response.status_code, response.url.split("?")[0]) == (302, "/login/")


def test_who_may_compute_baselines(release, weak, admin, researcher):
    found = {}
    for user in (admin, researcher):
        text = page(user, release).content.decode()
        found[user.username] = ("Submit a run" in text, "Compute baselines" in text)
    assert found == {"ada": (True, True), "rosa": (True, False)}
    assert client_of(researcher).post(f"/releases/{release.pk}/leaderboard/").status_code == 403
    assert not Job.objects.filter(kind=BASELINES_JOB).exists()
    response = client_of(admin).post(f"/releases/{release.pk}/leaderboard/")
    assert response.status_code == 302
    assert Job.objects.get(kind=BASELINES_JOB).params == {"release": release.pk}
    assert "Baselines of Toy v1" in page(admin, release).content.decode()
    # Others may not ask for the job, so nothing on their page does.
    others = page(researcher, release, "?task=rerank").content.decode()
    assert "data-job" not in others
    assert "The baselines are being computed." in others


def test_an_empty_board_says_so(release, researcher, admin):
    assert "has no run yet" in page(researcher, release).content.decode()
    assert "“Compute baselines” adds" in page(admin, release).content.decode()
    assert page(admin, release, "?task=rerank").status_code == 200


def test_a_release_without_files_says_why(release, admin):
    for path in (release.directory / "snapshot").iterdir():
        path.unlink()
    text = page(admin, release).content.decode()
    assert "No runs can be scored on this release" in text
    assert client_of(admin).get("/releases/999999999/leaderboard/").status_code == 404


def test_runs_scored_on_two_versions_stand_side_by_side(release, weak, strong, admin):
    second = toy_release(version=2, previous=release)
    run_score(run=weak, release=second)
    response = page(admin, release, f"?beside={second.pk}")
    beside = {line.run.name: line.beside for line in response.context["shown"].lines}
    assert beside["weak & long"] == "16.7"
    assert beside["strong"] == ""
    assert "mAP@50 on v2" in response.content.decode()


def test_two_stage_runs_stand_under_their_first_stage_when_requested(release, weak, strong, admin):
    second = scored_run(
        release, STRONG, name="second", kind="rerank_embedding", first_stage=weak, rerank_depth=3
    )
    below = scored_run(
        release, WEAK, name="third", kind="rerank_embedding", first_stage=second, rerank_depth=2
    )
    shown = page(admin, release, "?stages=under").context["shown"]
    families = [[line.run.name for line in family] for family in shown.families]
    assert families == [["strong"], ["weak & long", "second", "third"]]
    assert [line.run.pk for line in shown.families[1]][2] == below.pk
    flat = page(admin, release).context["shown"]
    assert len(flat.families) == 1
    assert flat.runs == 4
    hidden = page(admin, release, "?stages=under&split=val").context["shown"]
    assert hidden.runs == 4


def test_groups_by_significance(release, weak, strong, admin):
    lines = page(admin, release).context["shown"].lines
    # Two queries can't tell anything apart.
    assert {line.run.name: line.groups for line in lines if line.groups} == {
        "strong": "a",
        "weak & long": "a",
    }


def test_scores_that_change_are_shown_at_once(release, weak, admin):
    before = board_runs(release, "full", admin)
    score = RunScores.objects.get(run=weak)
    score.measures = {**score.measures, "AP@50": [1.0, 0.5, 0.5]}
    score.save()
    assert board_runs(release, "full", admin).fingerprint != before.fingerprint
    assert rows(page(admin, release))["weak & long"][0] == "50.0"


def test_a_page_asks_the_database_no_more_often_for_more_runs(
    release, weak, admin, django_assert_max_num_queries
):
    page(admin, release)
    client = client_of(admin)
    with django_assert_max_num_queries(20):
        client.get(f"/releases/{release.pk}/leaderboard/")
    for number in range(5):
        scored_run(release, WEAK, name=f"more {number}")
    # Each with its best possible re-ranks: fifteen rows whose figures were never read.
    with django_assert_max_num_queries(20):
        client.get(f"/releases/{release.pk}/leaderboard/")


def test_runs_drawn_by_category_are_those_chosen(release, weak, strong, admin):
    usual = page(admin, release)
    assert usual.context["drawn"] == {weak.pk, strong.pk}
    assert page(admin, release, f"?run={weak.pk}&run=9999").context["drawn"] == {weak.pk}


def test_the_tradeoff_needs_two_runs_that_tell(release, weak, strong, admin):
    text = page(admin, release).content.decode()
    assert "Only one of 2 method cards states it" in text
    assert "No method card states it" in text


def test_a_newer_release_without_runs_names_those_with_runs(release, weak, researcher, reviewer):
    newer = toy_release(version=2)
    shown = page(reviewer, newer).content.decode()
    assert "Toy v2 has no run yet" in shown
    assert f'Releases with runs: <a href="/releases/{release.pk}/leaderboard/">Toy v1</a>' in shown
    reader = client_of(reviewer)
    assert reader.get("/leaderboard/").url == f"/releases/{release.pk}/leaderboard/"
    # A private run of somebody else doesn't make a board.
    scored_run(newer, STRONG, name="private", owner=researcher)
    assert reader.get("/leaderboard/").url == f"/releases/{release.pk}/leaderboard/"
    assert client_of(researcher).get("/leaderboard/").url == f"/releases/{newer.pk}/leaderboard/"
