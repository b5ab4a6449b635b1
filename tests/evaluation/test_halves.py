"""A test split in two halves: what researchers see of an open board, and of a closed one."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client

from core.access import Role
from core.errors import Conflict
from core.jobs.services import job_slice_run
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.baselines import baselines_begin
from evaluation.runs.fusions import run_fuse
from evaluation.runs.models import Run
from evaluation.runs.services import run_publish
from evaluation.scoring.hidden_labels import LabelsHidden, public_half
from releases.making.services import board_close, release_claim, release_fill
from releases.models import Release
from releases.snapshot.snapshot import FixedImage
from retrieval.corpus.models import Image
from tests.annotator.addresses import body_of
from tests.conftest import api_of, client_of, person
from tests.evaluation.runs import scored_run, trec
from tests.evaluation.test_hidden_labels import crawl, differing
from tests.releases.snapshots import header, image, pair, query, write_snapshot
from tests.releases.toy_release import toy_release

SECRET = "5e" * 32
VAL, TEST = range(1, 3), range(3, 27)
IMAGES = range(1, 61)
PUBLIC = public_half(SECRET, TEST)
PRIVATE = frozenset(TEST) - PUBLIC
MEASURES = ("AP@50", "nDCG@50")


def relevant_to(query_id: int, shift: int) -> set[int]:
    """Twelve relevant images; `shift` changes those of the private half alone."""
    seed = [query_id, shift if query_id in PRIVATE else 0]
    return set(np.random.default_rng(seed).choice(IMAGES, 12, replace=False).tolist())


def make_release(shift: int) -> Release:
    """A release of two validation and 24 test queries, whose halves SECRET fixes."""
    options = {"rerank_model": "", "test_halves": True}
    release = release_claim(name="Halves", created_by=None, options=options)
    Release.objects.filter(pk=release.pk).update(halves_secret=SECRET)
    queries = [query(i, f"query {i}", split="val" if i in VAL else "test") for i in (*VAL, *TEST)]

    def take(directory: Path, progress: Any) -> None:
        write_snapshot(
            directory,
            header=header(name="Halves", corpus_images=len(IMAGES), test_labels="hidden"),
            queries=queries,
            pairs=[
                pair(one.query_id, number, number in relevant_to(one.query_id, shift))
                for one in queries
                for number in IMAGES
            ],
            images=[image(number) for number in IMAGES],
            fixed=[
                FixedImage(one.query_id, rank, rank, 1 - rank / 100)
                for one in queries
                for rank in IMAGES
            ],
        )

    return release_fill(release=release, steps=(), take=take)


def order(number: int, query_id: int) -> list[int]:
    """Run 1 ranks all relevant images of the public half first, run 2 those of the private one."""
    ranked: list[int] = np.random.default_rng([number, query_id]).permutation(IMAGES).tolist()
    if query_id in (PUBLIC if number == 1 else PRIVATE if number == 2 else ()):
        relevant = relevant_to(query_id, 0)
        ranked.sort(key=lambda one: one not in relevant)
    return ranked


def make_world(shift: int) -> dict[str, Client]:
    """A release with published and private runs of both tasks; the people's clients."""
    people = {role: person(role, role) for role in Role}
    Image.objects.bulk_create(
        Image(id=number, dataset="toy", source_id=str(number), file_name=f"{number}.jpg",
              sha256=f"{number:064x}", format="JPEG", width=10, height=10, size_bytes=100)
        for number in IMAGES
    )  # fmt: skip
    release = make_release(shift)
    baselines_begin(release=release, created_by=None)
    for number, task in product((1, 2, 3), Run.Task.values):
        orders = {query_id: order(number, query_id) for query_id in (*VAL, *TEST)}
        owner = people[Role.RESEARCHER]
        run = scored_run(release, orders, name=f"run {number}", task=task, owner=owner)
        if number < 3:
            run_publish(run=run)
    for job in release.runs.exclude(job=None).values_list("job", flat=True):
        job_slice_run(job_id=job)
    return {role: client_of(user) for role, user in people.items()}


@pytest.fixture
def in_world(settings: Any, tmp_path: Path) -> Callable[..., Any]:
    """`in_world(shift, do)` gives what `do(clients)` finds in a world of its own."""

    def find(shift: int, do: Callable[[dict[str, Client]], Any]) -> Any:
        settings.VAR_DIR = tmp_path / str(shift)
        cache.clear()
        call_command("flush", interactive=False, reset_sequences=True, verbosity=0)
        return do(make_world(shift))

    return find


def test_the_public_half_is_the_first_by_hmac_rounded_up() -> None:
    ids = [*range(40, 53)]
    key = bytes.fromhex(SECRET)
    digests = {i: hmac.new(key, str(i).encode(), hashlib.sha256).digest() for i in ids}
    assert public_half(SECRET, ids) == set(sorted(ids, key=digests.__getitem__)[:7])
    assert public_half(SECRET, ids[::-1]) == public_half(SECRET, ids) != public_half("00" * 32, ids)


def answers(client: Client) -> dict[str, tuple[int, bytes]]:
    """Everything that can be had by GET, with every choice of a split."""
    found = crawl(client)
    for split, task in product(("public", "private", "test", "both"), Run.Task.values):
        shown = f"split={split}&task={task}"
        for path in (
            f"/releases/1/leaderboard/?{shown}",
            f"/releases/1/analysis/?{shown}",
            f"/releases/1/bias/?{shown}",
            f"/releases/1/correlations/?{shown}",
            f"/runs/2/?{shown}",
            f"/runs/compare/?a=2&b=4&{shown}",
        ):
            answer = client.get(path)
            found[path] = (answer.status_code, body_of(answer))
    return found


@pytest.mark.django_db(transaction=True)
def test_labels_of_the_private_half_change_nothing_that_researchers_see_of_an_open_board(in_world):
    """In two worlds the private half has other labels. A mean over it or over the whole split, on
    any page, in an export or the API, would tell the worlds apart."""
    board = "/releases/1/leaderboard/"

    def look(clients: dict[str, Client]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        found = answers(clients[Role.RESEARCHER])
        telling = {
            f"{board}?split={split}": body_of(clients[Role.REVIEWER].get(f"{board}?split={split}"))
            for split in ("test", "public", "private")
        }
        clients[Role.ADMIN].post("/releases/1/close-board/")
        closed = {
            path: body_of(clients[Role.RESEARCHER].get(path))
            for path in (board, f"{board}?split=public", "/releases/1/leaderboard.json")
        }
        return found, telling, closed

    one, other = (in_world(shift, look) for shift in (0, 1))
    assert differing(one[0], other[0]) == set()
    assert len([path for path, (status, _) in one[0].items() if status == 200]) > 100
    assert differing(one[1], other[1]) == {
        f"{board}?split={split}" for split in ("test", "private")
    }
    assert differing(one[2], other[2]) == {board, "/releases/1/leaderboard.json"}


def means_over(client: Client, run: int, query_ids: frozenset[int]) -> dict[str, float]:
    """The rounded means of a run over some queries, by a reviewer's client."""
    scores = client.get(f"/api/runs/{run}/scores/").json()
    kept = np.isin(scores["query_ids"], [*query_ids])
    return {
        key: round(float(np.mean(np.array(scores["measures"][key])[kept])), 3) for key in MEASURES
    }


@pytest.mark.django_db(transaction=True)
def test_a_board_shows_the_public_half_and_once_it_is_closed_the_private_one(in_world):
    in_world(0, check_board)


def check_board(clients: dict[str, Client]) -> None:
    researcher, reviewer, admin = (
        clients[role] for role in (Role.RESEARCHER, Role.REVIEWER, Role.ADMIN)
    )
    release = Release.objects.get()
    first, second, late = (
        Run.objects.get(task=Run.Task.FULL, name=f"run {number}") for number in (1, 2, 3)
    )
    board, close = "/releases/1/leaderboard/", "/releases/1/close-board/"
    owner = first.owner

    # While it is open.
    for run in (first, second):
        [scores] = researcher.get(f"/api/runs/{run.pk}/").json()["scores"]
        assert scores["means"].keys() == {"val", "public"}
        assert scores["means"]["public"] == means_over(reviewer, run.pk, PUBLIC)
        assert scores["means"]["public"] != means_over(reviewer, run.pk, frozenset(TEST))
    runs = board_runs(release, Run.Task.FULL, owner)
    assert [*runs.splits] == ["public", "val"]
    for split in ("test", "private", "both"):
        with pytest.raises(LabelsHidden):
            runs.board(split)
    seen = reviewer.get(board).context["splits"]
    assert [key for key, _ in seen] == ["test", "val", "both", "public", "private"]
    assert "mAP@50 public half of test" in researcher.get("/runs/").content.decode()
    exported = admin.get("/releases/1/leaderboard.json").json()["tasks"]["full"]["runs"]
    assert {split for run in exported for split in run["scores"]} == {"val", "public"}
    assert "Close the board" not in reviewer.get(board).content.decode()
    assert "Close the board" in admin.get(board).content.decode()
    assert SECRET not in json.dumps(admin.get("/api/releases/1/").json())

    # Closing it.
    for client in (researcher, reviewer):
        assert client.post(close).status_code == client.post(f"/api{close}").status_code == 403
    assert Release.objects.get().board_closed_at is None
    closed_at = admin.post(f"/api{close}").json()["board_closed_at"]
    assert admin.post(close).status_code == 302
    assert admin.get("/api/releases/1/").json()["board_closed_at"] == closed_at

    # Everybody sees the private half, and how far places moved.
    table = researcher.get(board).context["table"]
    moves = {row.run.name: (row.place, row.public_place, row.moved) for row in table.rows}
    place, others = moves["run 1"][0], moves["run 2"][1]
    assert table.title == "Private half of test queries"
    assert moves["run 2"] == (1, others, f"+{others - 1}")
    assert moves["run 1"] == (place, 1, f"−{place - 1}")
    page = researcher.get(f"{board}?split=public").context["table"]
    assert page.rows[0].run.name == "run 1"
    [scores] = researcher.get(f"/api/runs/{second.pk}/").json()["scores"]
    assert scores["means"]["private"] == means_over(reviewer, second.pk, PRIVATE)
    assert scores["means"].keys() == {"val", "public", "private"}

    # No run with test queries comes in any more, nor out of hiding.
    release.refresh_from_db()
    api, address = api_of(owner), "/api/releases/1/runs/"
    orders = {query_id: [*IMAGES] for query_id in (*VAL, *TEST)}
    for split, status in (("all", 409), ("test", 409), ("val", 201)):
        file = io.BytesIO(trec({pk: orders[pk] for pk in VAL} if split == "val" else orders))
        answer = api.post(address, {"file": file, "name": split, "split": split}, "multipart")
        assert answer.status_code == status, answer.content
    with pytest.raises(Conflict, match="is closed"):
        run_fuse(runs=[first, second], owner=owner)
    assert api.post(f"/api/runs/{late.pk}/publish/").status_code == 409
    assert researcher.post(f"/runs/{late.pk}/publish/").status_code == 302
    assert not Run.objects.get(pk=late.pk).published


def test_nothing_is_shown_of_a_half_with_few_queries(images, settings, var_dir, researcher):
    release = toy_release(test_labels="hidden", halves_secret=SECRET)
    run = scored_run(release, {1: [1], 2: [2], 3: [3], 4: [4]}, owner=researcher)
    for _ in range(2):
        assert [*board_runs(release, Run.Task.FULL, researcher).splits] == ["val"]
        [scores] = api_of(researcher).get(f"/api/runs/{run.pk}/").json()["scores"]
        assert [*scores["means"]] == ["val"]
        board_close(release=release)


@pytest.mark.django_db
def test_halves_are_chosen_once_for_a_benchmark_and_kept_while_a_board_is_open(images, var_dir):
    def claim(name: str, **options: Any) -> Release:
        chosen = {"rerank_model": "", **options}
        return release_claim(name=name, created_by=None, options=chosen)

    with pytest.raises(ValidationError, match="no private half"):
        claim("New", test_halves=True, test_labels="public")
    assert not claim("New").has_halves
    divided = claim("New", test_halves=True)
    assert len(bytes.fromhex(divided.halves_secret)) == 32
    # Whole means of another release, or means over other halves, would tell of the private half.
    assert claim("Other").halves_secret == divided.halves_secret
    with pytest.raises(ValidationError, match="stay hidden"):
        claim("Third", test_labels="public")

    Release.objects.all().delete()
    toy_release(test_labels="hidden")
    with pytest.raises(ValidationError, match="the whole test split"):
        claim("New", test_halves=True)
    with pytest.raises(Conflict, match="no private half"):
        board_close(release=Release.objects.get())


@pytest.mark.django_db
def test_a_made_release_changes_by_the_closing_of_its_board_alone(images, var_dir):
    release = toy_release(test_labels="hidden", halves_secret=SECRET)
    row = Release.objects.filter(pk=release.pk)
    closing = {"board_closed_at": release.made_at}
    for change in ({"halves_secret": "00"}, {**closing, "halves_secret": ""}):
        with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
            row.update(**change)
    row.update(**closing)
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        row.update(board_closed_at=None)
