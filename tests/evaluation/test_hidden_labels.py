"""What those who may not see the labels of a test split can find out about them: nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np
import pytest
from django.conf import settings
from django.core.cache import cache
from django.core.management import call_command
from django.http import QueryDict
from django.test import Client

from core.access import Role
from core.jobs.services import job_slice_run
from evaluation.leaderboard.choice import Choice, read_choice, visible_choice
from evaluation.leaderboard.selectors import BoardRuns, board_runs
from evaluation.runs.baselines import baselines_begin
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from evaluation.runs.submissions import short_rankings
from evaluation.scoring.hidden_labels import LabelsHidden, summarize
from labeling.audits.draws import KEY_BYTES, draw_order, selected
from releases.making.services import release_claim, release_fill
from releases.models import Release
from releases.snapshot.snapshot import (
    AuditedImage,
    DrawnRound,
    FixedImage,
    ModelRank,
    PoolImage,
    ReleasedAudit,
    Seed,
)
from retrieval.corpus.models import Image
from tests.annotator.addresses import addresses, body_of
from tests.conftest import api_of, client_of, person
from tests.evaluation.runs import rankings, scored_run
from tests.releases.snapshots import header, image, pair, query, write_snapshot
from tests.releases.toy_release import toy_release

VAL, TEST = range(1, 3), range(3, 13)
IMAGES = range(1, 81)
"""What runs rank, and fixed lists and the judgments of validation queries name."""
OTHERS = range(81, 141)
"""Images that only test queries were judged for."""
KEY = "5e" * KEY_BYTES
"""Of the release's audits."""
CATEGORIES = ("Species ID", "Human Impact", "Health and Disease")


def relevant_to(query_id: int, shift: int) -> set[int]:
    """The relevant images; `shift` gives each test query the labels of another."""
    if query_id in TEST:
        query_id = TEST[(query_id - TEST[0] + shift) % len(TEST)]
    return set(np.random.default_rng(query_id).choice(IMAGES, 5 + query_id, replace=False).tolist())


def judged_for(query_id: int, shift: int) -> list[int]:
    """The judged images, the relevant ones among them; `shift` changes which and how many others
    were judged for each test query, and so which images any judgment names."""
    if query_id in VAL:
        return list(IMAGES)
    random = np.random.default_rng([query_id, shift])
    drawn = random.choice([*IMAGES, *OTHERS[: 10 + 4 * shift]], random.integers(20, 60), False)
    return sorted({*drawn.tolist(), *relevant_to(query_id, shift)})


def order(number: int, query_id: int) -> list[int]:
    """A run's order of all images, the same for all test queries."""
    seed = [number, 0 if query_id in TEST else query_id]
    return np.random.default_rng(seed).permutation(IMAGES).tolist()


def key_of(query_id: int, shift: int) -> str:
    """What a query's draws are ordered by."""
    return f"{query_id + shift if query_id in TEST else query_id:02x}" * KEY_BYTES


def pool_of(query_id: int, shift: int) -> list[PoolImage]:
    """All images in the order of their ids; the relevant ones of the first 40 were found before 15
    of the others were drawn."""
    drawable = IMAGES[40:]
    drawn = draw_order(bytes.fromhex(key_of(query_id, shift)), query_id, drawable)[:15]
    relevant = relevant_to(query_id, shift)
    return [
        PoolImage(
            query_id=query_id,
            rank=number,
            image_id=number,
            label="relevant" if number in relevant else "not_relevant",
            withdrawn=False,
            drawable=int(number in drawable),
            round=int(number in drawn),
            place=drawn.index(number) + 1 if number in drawn else 0,
        )
        for number in IMAGES
    ]


def audited_of(query_id: int, shift: int) -> list[AuditedImage]:
    """The images that nobody had judged, by the labels that they got."""
    relevant = relevant_to(query_id, shift)
    drawn = {one for one in IMAGES if selected(bytes.fromhex(KEY), query_id, one, 0.3)}
    return [
        AuditedImage(
            query_id=query_id,
            image_id=number,
            audit=1,
            drawn=number in drawn,
            label=("relevant" if number in relevant else "not_relevant") * (number in drawn),
            withdrawn=False,
        )
        for number in IMAGES[40 + (query_id in TEST) * (shift % 5) :]
    ]


def make_release(version: int, shift: int, test_labels: str) -> Release:
    """A release of two validation and ten test queries with all of its files."""
    options = {"rerank_model": "", "test_labels": test_labels}
    release = release_claim(name="Secret", created_by=None, options=options)
    queries = [
        query(number, f"query {number}", split="val" if number in VAL else "test",
              category=CATEGORIES[number % 3], supercategory=CATEGORIES[number % 3],
              rule="streak" if number in VAL or shift else "exhausted")
        for number in (*VAL, *TEST)
    ]  # fmt: skip

    def take(directory: Path, progress: Any) -> None:
        write_snapshot(
            directory,
            header=header(
                name="Secret", version=version, corpus_images=len(IMAGES) + len(OTHERS),
                test_labels=test_labels, include_images=True,
            ),
            queries=queries,
            pairs=[
                pair(one.query_id, number, number in relevant_to(one.query_id, shift))
                for one in queries
                for number in judged_for(one.query_id, shift)
            ],
            images=[
                image(number)
                for number in sorted(
                    {*IMAGES, *(i for one in queries for i in judged_for(one.query_id, shift))}
                )
            ],
            fixed=[
                FixedImage(one.query_id, rank, rank, 1 - rank / 100)
                for one in queries
                for rank in IMAGES
            ],
            rounds=[
                DrawnRound(one.query_id, 1, key_of(one.query_id, shift), True) for one in queries
            ],
            pools=[image for one in queries for image in pool_of(one.query_id, shift)],
            release_audits=[
                ReleasedAudit(one.query_id, 1, one.split, KEY, 0.3, True, 40,
                              one.query_id * shift * (one.query_id in TEST))
                for one in queries
            ],
            audited=[image for one in queries for image in audited_of(one.query_id, shift)],
            model_ranks=[
                ModelRank(one.query_id, number, "toy", number, 1 - number / 100)
                for one in queries
                for number in sorted(relevant_to(one.query_id, shift))
            ],
            seeds=[
                Seed(one.query_id, min(relevant_to(one.query_id, shift)), relevance)
                for one in queries
                for relevance in ("relevant", "not_relevant")[
                    : 1 + (one.query_id in TEST) * ((one.query_id + shift) % 2)
                ]
            ],
        )  # fmt: skip

    return release_fill(release=release, steps=(), take=take)


def make_world(shift: int, test_labels: str) -> dict[str, Client]:
    """Two versions of a release, published runs of both tasks on them and a private one; the
    people's clients."""
    people = {role: person(role, role) for role in Role}
    Image.objects.bulk_create(
        Image(id=number, dataset="toy", source_id=str(number), file_name=f"{number}.jpg",
              sha256=f"{number:064x}", format="JPEG", width=10, height=10, size_bytes=100)
        for number in (*IMAGES, *OTHERS)
    )  # fmt: skip
    for version in (1, 2):
        release = make_release(version, shift + version - 1, test_labels)
        baselines_begin(release=release, created_by=None)
        for number, task in product((1, 2), Run.Task.values):
            orders = {query_id: order(number, query_id) for query_id in (*VAL, *TEST)}
            owner = people[Role.RESEARCHER]
            run = scored_run(release, orders, name=f"run {number}", task=task, owner=owner)
            if number == 1:
                run_publish(run=run)
        for job in [*release.runs.values_list("job", flat=True)]:
            if job:
                job_slice_run(job_id=job)
    return {role: client_of(user) for role, user in people.items()}


@pytest.fixture
def in_world(settings: Any, tmp_path: Path) -> Callable[..., Any]:
    """`in_world(shift, labels, do)` gives what `do(clients)` finds in a world of its own."""
    count = 0

    def find(shift: int, test_labels: str, do: Callable[[dict[str, Client]], Any]) -> Any:
        nonlocal count
        count += 1
        settings.VAR_DIR = tmp_path / str(count)
        cache.clear()
        call_command("flush", interactive=False, reset_sequences=True, verbosity=0)
        return do(make_world(shift, test_labels))

    return find


def first_addresses() -> Iterator[str]:
    """Every address with ids that are there, and every choice of the pages of scores."""
    for address in addresses():
        # The last two hold no data, and take long.
        if not address.startswith(("admin/", "api/schema", "healthz")):
            yield from {f"/{address}", f"/{address}".replace("/1/", "/2/")}
    for run, number in product(range(1, 13), (VAL[0], TEST[0])):
        yield f"/runs/{run}/queries/{number}/"
        yield f"/api/runs/{run}/scores/?release={run % 2 + 1}"
    for split, measure in (("test", "AP@50"), ("both", "P@1")):
        shown = f"split={split}&measure={measure}"
        if "correlations" in settings.EXTRAS:
            yield f"/releases/1/correlations/?{shown}"
        yield f"/releases/1/bias/?{shown}"
        yield f"/releases/1/bias.csv?{shown}"
        for task, view in product(Run.Task.values, ("all", "category", "measures")):
            yield f"/releases/1/leaderboard/?{shown}&task={task}&view={view}&beside=2"
        yield f"/releases/1/leaderboard/?{shown}&column=P@1&column=AP&method=upload&size=medium"
        yield f"/releases/1/analysis/?{shown}"
        yield f"/runs/1/?{shown}&release=2"
        yield f"/runs/compare/?a=1&b=7&{shown}"
    for release, extension in product((1, 2), ("csv", "json", "html", "tex", "zip")):
        yield f"/releases/{release}/leaderboard.{extension}"


def crawl(client: Client) -> dict[str, tuple[int, bytes]]:
    """Status and body of everything that can be had by GET, with the paths that it links to."""
    found: dict[str, tuple[int, bytes]] = {}
    waiting = set(first_addresses())
    while waiting:
        address = waiting.pop()
        answer = client.get(address)
        body = body_of(answer)
        found[address] = (answer.status_code, body)
        if "html" in answer.get("Content-Type", "") and answer.status_code == 200:
            links = re.findall(r'(?:href|src|action)="([^"]+)"', body.decode())
        else:
            links = re.findall(r'"(?:https?://testserver)?(/[\w/.?=&-]+)"', body.decode("latin-1"))
        for link in links:
            to = urlsplit(urljoin(address, html.unescape(link)))
            if not to.netloc and not to.path.startswith(("/static/", "/images/")):
                waiting |= {to.path} - found.keys()
    return found


def differing(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    return {
        address for address in one.keys() | other.keys() if one.get(address) != other.get(address)
    }


#: Some of what tells labels.
TELLING = (
    "/api/runs/1/scores/?release=1",
    f"/runs/1/queries/{TEST[0]}/",
    "/releases/1/files/inquire_annotations.csv",
    "/releases/1/files/certificates.csv",
    "/releases/1/files/snapshot/rounds.parquet",
    "/releases/1/files/release_certificate.json",
    "/releases/1/files/snapshot/audited.parquet",
    "/releases/1/",
    "/releases/1/archive",
    "/releases/1/statistics/",
    "/releases/1/leaderboard/?split=test&measure=AP@50&task=full&view=category&beside=2",
)


@pytest.mark.django_db(transaction=True)
def test_test_queries_exchange_their_labels_and_nobody_notices_who_may_not_see_them(in_world):
    """In two worlds each test query has the labels of another, other images were judged for it, and
    every run has the same order for all of them. Whoever can tell the worlds apart has learned
    something of one query's labels."""

    def look(clients: dict[str, Client]) -> list[dict[str, Any]]:
        reviewer = {address: body_of(clients[Role.REVIEWER].get(address)) for address in TELLING}
        crawled = [crawl(clients[role]) for role in (Role.RESEARCHER, Role.ANNOTATOR)]
        return [*crawled, reviewer, scores_seen(clients)]

    one, other = (in_world(shift, "hidden", look) for shift in (0, 5))
    check_scores(**one.pop())
    other.pop()
    by_researcher, by_annotator, by_reviewer = map(differing, one, other)
    assert by_researcher == by_annotator == set()
    assert by_reviewer == set(TELLING)
    served, closed = (
        {address for address, (status, _) in found.items() if status == 200} for found in one[:2]
    )
    assert {"/runs/1/", "/releases/1/leaderboard/", "/releases/1/archive"} <= served
    assert len(served) > 100
    assert not [address for address in closed if re.match("/(api/)?(runs|releases|lead)", address)]


@pytest.mark.django_db(transaction=True)
def test_public_labels_are_seen_by_researchers_and_not_by_annotators(in_world):
    def look(clients: dict[str, Client]) -> dict[str, set[int]]:
        return {
            role: {clients[role].get(address).status_code for address in TELLING}
            for role in (Role.RESEARCHER, Role.ANNOTATOR)
        }

    assert in_world(0, "public", look) == {Role.RESEARCHER: {200}, Role.ANNOTATOR: {403, 404}}


def labels_from_scores(scores: dict[str, float], depth: int = 10) -> list[tuple[int, ...]]:
    """The labels of the first images of one query that agree with its P, AP, nDCG and R at 10: each
    of 2^10 sets is tried for each number of relevant images."""
    hits = np.array(list(product((0, 1), repeat=depth)))
    ranks = np.arange(1, depth + 1)
    precision = np.cumsum(hits, axis=1) / ranks
    gains = 1 / np.log2(ranks + 1)
    found = []
    for relevant in range(1, len(IMAGES) + 1):
        shown = {
            "P@10": hits.mean(axis=1),
            "R@10": hits.sum(axis=1) / relevant,
            "AP@10": (precision * hits).sum(axis=1) / min(relevant, depth),
            "nDCG@10": hits @ gains / gains[: min(relevant, depth)].sum(),
        }
        same = [np.abs(shown[key] - scores[key]) < 1e-9 for key in shown]
        found += [tuple(row) for row in hits[np.all(same, axis=0)].tolist()]
    return sorted(set(found))


def attack(client: Client) -> dict[int, list[tuple[int, ...]]]:
    """The labels of each query that a published run's scores beside its order give away."""
    shown = client.get("/api/runs/1/scores/").json()
    return {
        query_id: labels_from_scores(
            {key: values[place] for key, values in shown["measures"].items()}
        )
        for place, query_id in enumerate(shown["query_ids"])
    }


def scores_seen(clients: dict[str, Client]) -> dict[str, Any]:
    """What researchers and reviewers see of the scores of the first run."""
    researcher, reviewer = clients[Role.RESEARCHER], clients[Role.REVIEWER]
    [shown], details = (
        client.get("/api/runs/1/").json()["scores"] for client in (researcher, reviewer)
    )
    whole = next(one for one in details if one["release"] == shown["release"])
    best = Run.objects.filter(kind=Run.Kind.BEST, release=1, published_at__isnull=False)[0]
    return {
        "computed": attack(researcher),
        "by_reviewer": attack(reviewer),
        "shown": shown["means"],
        "whole": whole["means"],
        "page": researcher.get("/releases/1/leaderboard/?split=test").content.decode(),
        "splits": researcher.get(f"/runs/{best.pk}/").context["splits"],
        "best": researcher.get(f"/api/runs/{best.pk}/").json(),
    }


def check_scores(
    computed: Any, by_reviewer: Any, shown: Any, whole: Any, page: str, splits: Any, best: Any
) -> None:
    """Asserts that researchers see rounded means of the test split, and no score of its queries."""
    truth = {
        query_id: [tuple(int(i in relevant_to(query_id, 0)) for i in order(1, query_id)[:10])]
        for query_id in (*VAL, *TEST)
    }
    assert by_reviewer == truth
    assert computed == {query_id: truth[query_id] for query_id in VAL}

    assert shown["val"] == whole["val"]
    assert shown["test"] == {key: round(whole["test"][key], 3) for key in ("AP@50", "nDCG@50")}
    assert all(shown["test"][key] != whole["test"][key] for key in shown["test"])
    assert "The labels of the test split are hidden" in page
    for value in shown["test"].values():
        assert f"{100 * value:.1f}" in page
    assert f"{whole['test']['AP@50']:.9g}" not in page

    # A best possible re-rank is shown of the validation split alone.
    assert [value for value, _ in splits] == ["val"]
    assert [list(one["means"]) for one in best["scores"]] == [["val"]]
    assert best["sha256"] == ""
    assert "Best possible re-rank" not in page


def test_a_summary_does_not_depend_on_the_order_of_the_queries():
    scores = np.random.default_rng(1).random((3, 12))
    one, other = summarize({"AP@50": scores}), summarize({"AP@50": scores[:, ::-1]})
    assert one.groups == other.groups
    assert np.array_equal(one.means["AP@50"], other.means["AP@50"])
    assert np.array_equal(one.intervals["AP@50"], other.intervals["AP@50"])
    assert one.means["AP@50"] == pytest.approx(scores.mean(axis=1), abs=0.0005)
    assert summarize({"P@10": scores}).means == {}


@pytest.fixture
def release(images: Any, settings: Any, var_dir: Path) -> Release:
    """Hidden labels, in a corpus of six images; too few test queries for a score."""
    return toy_release(test_labels="hidden")


ORDERS = {1: [2, 1, 4], **{query_id: [1, 2, 3, 4, 5, 6] for query_id in (2, 3, 4)}}


def test_few_test_queries_show_no_score(release, researcher, reviewer):
    run = scored_run(release, ORDERS, owner=researcher)
    run_publish(run=run)
    runs = board_runs(release, Run.Task.FULL, researcher)
    assert list(runs.splits) == ["val"]
    for split in ("test", "both"):
        with pytest.raises(LabelsHidden):
            runs.board(split)
    page = client_of(researcher).get(f"/releases/{release.pk}/leaderboard/").content.decode()
    assert "with fewer than 10 scored queries no score is shown" in page
    [scores] = api_of(researcher).get(f"/api/runs/{run.pk}/").json()["scores"]
    assert list(scores["means"]) == ["val"]
    assert "test" in api_of(reviewer).get(f"/api/runs/{run.pk}/").json()["scores"][0]["means"]


def test_an_address_chooses_no_more_than_its_reader_sees():
    runs = BoardRuns(
        release=Release(benchmark_id=1),
        task=Run.Task.FULL,
        runs={},
        values={},
        queries={number: query(number) for number in TEST},
        query_ids=np.array(TEST),
        fingerprint="",
        test_hidden=True,
    )
    wanted = "view=category&measure=P@1&beside=2&run=1"
    for split in ("test", "both"):
        assert visible_choice(read_choice(QueryDict(f"{wanted}&split={split}")), runs)[0] == Choice(
            measure="AP@50"
        )
    of_val = read_choice(QueryDict(f"{wanted}&split=val"))
    assert visible_choice(of_val, runs)[0] == of_val


def test_runs_rank_enough_images_for_each_test_query(release):
    """The toy's corpus has six images, fewer than the cut-off of 50."""
    for orders, missing in (
        (ORDERS, []),
        ({1: [2]}, []),
        ({**ORDERS, 3: [1, 2, 3, 4, 5]}, [3]),
        ({2: [1, 2, 3, 4, 5, 6]}, [3, 4]),
    ):
        errors = short_rankings(release, Run.Task.FULL, rankings(orders), "run.txt")
        assert [int(error.message.split()[1]) for error in errors] == missing
        assert all("at least 6 images" in error.message for error in errors)
    # Of the test queries 2 alone has a list that is fit for re-ranking, of four images.
    errors = short_rankings(release, Run.Task.RERANK, rankings({2: [5, 6, 2]}), "run.txt")
    assert [error.message.split(";")[0] for error in errors] == ["query 2 has 3 images"]
    assert short_rankings(release, Run.Task.RERANK, rankings({2: [5, 6, 2, 1]}), "") == []
    public = toy_release(name="Public", test_labels="public")
    assert short_rankings(public, Run.Task.FULL, rankings({3: [1]}), "run.txt") == []


def test_researchers_score_no_run_on_another_version_with_hidden_labels(
    release, researcher, reviewer
):
    newer = toy_release(version=2, test_labels="hidden")
    run = scored_run(release, ORDERS, owner=researcher)
    run_publish(run=run)
    address = f"/api/runs/{run.pk}/scores/"
    assert api_of(researcher).post(address, {"release": newer.pk}).status_code == 403
    answer = client_of(researcher).post(f"/runs/{run.pk}/score/", {"release": newer.pk})
    assert answer.status_code == 404
    assert api_of(reviewer).post(address, {"release": newer.pk}).status_code == 201
    assert api_of(researcher).get(f"{address}?release={newer.pk}").status_code == 404
    [scores] = api_of(researcher).get(f"/api/runs/{run.pk}/").json()["scores"]
    assert scores["release"] == release.pk
