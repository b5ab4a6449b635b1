"""Versions of a benchmark: which one is next, what each records, and what a snapshot holds."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from labeling.queries.models import Query
from releases import selectors
from releases.making import services
from releases.models import Release
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import Pair, Snapshot, software
from retrieval.corpus.models import Image, Species, SpeciesName
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.services import image_withdraw
from tests.releases.toy import make_list, make_query


def made(name: str = "Birds", **options: Any) -> Release:
    """A release that its job made."""
    release = services.release_create(name=name, created_by=None, options=options)
    assert job_slice_run(job_id=release.job_id) is Slice.FINISHED
    return Release.objects.get(pk=release.pk)


def snapshot_of(release: Release) -> Snapshot:
    return Snapshot(release.snapshot_directory)


@pytest.fixture
def labeled(query: Query, judge: Any, annotator: Any, other_annotator: Any) -> Query:
    make_list(query, [2, 1, 3])
    judge(query, 2, annotator, "relevant", seconds=1.5)
    judge(query, 1, annotator, "relevant", seconds=2.25)
    judge(query, 1, other_annotator, "unsure", seconds=3)
    judge(query, 4, other_annotator, "not_relevant", source="search")
    return query


def test_a_name_made_again_is_its_next_version(db: None, var_dir: Path) -> None:
    first, second = made("Birds"), made(" Birds ")
    other = made("Beetles")
    assert [(one.name, one.version) for one in (first, second, other)] == [
        ("Birds", 1), ("Birds", 2), ("Beetles", 1),
    ]  # fmt: skip
    assert (first.header["corpus_images"], first.header["corpus_fingerprint"]) == (0, "")
    assert [one.previous for one in (first, second, other)] == [None, first, None]
    assert selectors.release_versions(first) == [second, first]
    assert selectors.release_names() == ["Beetles", "Birds"]
    assert selectors.release_find(name="Birds") == second
    assert selectors.release_find(name="Birds", version=1) == first
    assert selectors.release_find(name="Birds", version=3) is None
    names = ["Birds", "Birds v1", str(first.pk)]
    assert [selectors.release_named(name) for name in names] == [second, first, first]
    # A name from before such names were refused goes first.
    old = Release.objects.create(name="Birds v1", made_at=first.made_at, file_list=[{}])
    assert selectors.release_named("Birds v1") == selectors.release_named("Birds v1 v1") == old


def test_a_failed_version_is_no_version_before(db: None, var_dir: Path) -> None:
    first = made()
    failed = services.release_create(name="Birds", created_by=None)
    Job.objects.filter(pk=failed.job_id).update(state=Job.State.FAILED)
    assert selectors.release_find(name="Birds") == first
    again = services.release_create(name="Birds", created_by=None, options={"rerank_model": ""})
    assert (again.pk, again.version, again.previous) == (failed.pk, 2, first)
    assert Release.objects.count() == 2


def test_a_failed_one_is_tried_again_as_it_was_requested(db: None, var_dir: Path) -> None:
    options = {"include_images": True}
    release = services.release_create(name="Birds", created_by=None, options=options)
    with pytest.raises(Conflict, match="already being made"):
        services.release_retry(release=release, by=None)
    Job.objects.filter(pk=release.job_id).update(state=Job.State.CANCELED)
    assert services.release_retry(release=release, by=None).job_id == release.job_id
    assert job_slice_run(job_id=release.job_id) is Slice.FINISHED
    # What a command left half made is made by a job then.
    left = services.release_claim(name="Left", created_by=None)
    assert (left.state, left.job) == ("failed", None)
    assert services.release_retry(release=left, by=None).state == "queued"
    release.refresh_from_db()
    assert (release.files_ready, release.options["include_images"]) == (True, True)
    with pytest.raises(Conflict, match=r"Birds v1 is made and never changes"):
        services.release_retry(release=release, by=None)


def test_options_are_decided_when_a_release_is_begun(db: None, settings: Any) -> None:
    settings.EMBEDDING_MODEL = "toy"
    assert services.release_claim(name="a", created_by=None).options == {
        "rerank_model": "",
        "include_images": False,
    }
    EmbeddingModel.objects.create(name="toy", dimension=2)
    # It has embedded nothing.
    assert services.release_claim(name="b", created_by=None).options["rerank_model"] == ""
    options = {"rerank_model": "toy", "include_images": True}
    assert services.release_claim(name="c", created_by=None, options=options).options == options
    with pytest.raises(ValidationError) as caught:
        services.release_create(name="d", created_by=None, options={"rerank_model": "nothing"})
    assert caught.value.message_dict == {
        "rerank_model": ["No image is embedded with 'nothing'; known models: toy."]
    }
    assert not Release.objects.filter(name="d").exists()


def test_the_snapshot_holds_what_was_labeled(labeled: Query, var_dir: Path) -> None:
    stork = Species.objects.create(
        scientific_name="Ciconia ciconia", family="Ciconiidae", class_name="Aves"
    )
    for language, name in [("de", "Weißstorch"), ("en", "White Stork"), ("", "Ciconia ciconia")]:
        SpeciesName.objects.create(species=stork, language=language, name=name)
    heron = Species.objects.create(scientific_name="Ardea cinerea")
    SpeciesName.objects.create(species=heron, language="de", name="Graureiher")
    Image.objects.filter(pk=1).update(
        species=stork, license="CC-BY", latitude=52.5, longitude=13.25
    )
    Image.objects.filter(pk=2).update(species=heron)
    labeled.species.set([stork, heron])
    release = made()
    snapshot = snapshot_of(release)
    assert list(snapshot.judgments()) == [
        JudgmentRow(30, 1, "relevant", 1, 2, 2.25, "list"),
        JudgmentRow(30, 1, "unsure", 2, 2, 3.0, "list"),
        JudgmentRow(30, 2, "relevant", 1, 1, 1.5, "list"),
        JudgmentRow(30, 4, "not_relevant", 2, None, 0.0, "search"),
    ]
    assert list(snapshot.pairs()) == [
        Pair(30, 1, relevant=False, votes=2, rank=2),
        Pair(30, 2, relevant=True, votes=1, rank=1),
        Pair(30, 4, relevant=False, votes=1, rank=None),
    ]
    query = snapshot.queries[30]
    assert (query.text, query.split, query.annotators) == ("two storks on a nest ", "test", 2)
    assert query.seconds == 6.75
    assert (query.model, query.list_depth, query.list_size, query.list_total) == ("toy", 3, 3, 3)
    assert query.list_checksum == "0" * 64
    # The images that pairs name, and no other.
    first, second, fourth = snapshot.images()
    assert [one.image_id for one in (first, second, fourth)] == [1, 2, 4]
    assert list(snapshot.fixed()) == []
    assert (first.scientific_name, first.vernacular_name) == ("Ciconia ciconia", "White Stork")
    assert (first.class_name, first.family, first.license) == ("Aves", "Ciconiidae", "CC-BY")
    assert (first.latitude, first.longitude, first.location_uncertainty) == (52.5, 13.25, None)
    assert second.vernacular_name == "Graureiher"
    assert (fourth.scientific_name, fourth.vernacular_name, fourth.observed_at) == ("", "", "")
    assert query.species == ["Ardea cinerea", "Ciconia ciconia"]
    assert (release.header["corpus_images"], release.header["corpus_species"]) == (6, 2)
    manifest = json.loads((release.directory / "manifest.json").read_text())
    others = [entry for entry in release.file_list if entry["name"] != "manifest.json"]
    assert manifest["files"] == others
    assert manifest["release"] == release.header
    assert manifest["options"] == release.options
    assert manifest["counts"] == {
        "val_queries": 0, "test_queries": 1, "pairs": 3, "positives": 1, "judgments": 4,
        "images": 3,
    }  # fmt: skip


def test_the_header_tells_of_corpus_software_and_models(
    labeled: Query, admin: Any, reviewer: Any, var_dir: Path
) -> None:
    # A list that is still to be made orders nothing.
    unlisted = make_query(31, "a fox", split="val")
    unlisted.lists.create(model_name="later", text="a fox", depth=5)
    image_withdraw(image=Image(pk=3), by=reviewer)
    release = services.release_create(name="Birds", created_by=admin)
    job_slice_run(job_id=release.job_id)
    release.refresh_from_db()
    corpus = "".join(f"{number} {number:064x}\n" for number in (1, 2, 4, 5, 6))
    header = release.header
    assert header["corpus_fingerprint"] == hashlib.sha256(corpus.encode()).hexdigest()
    assert (header["corpus_images"], header["corpus_species"]) == (5, 0)
    assert header["models"] == [{"name": "toy", "depths": [3], "queries": 1}]
    assert (header["made_by"], header["software"]) == ("ada", software())
    assert header["software"].split()[0] == "inquire-annotator"
    assert (header["name"], header["version"], header["annotators"]) == ("Birds", 1, 2)
    assert header["made_at"].endswith("+00:00")
    stored = json.loads((release.snapshot_directory / "release.json").read_text())
    assert stored == header


def test_a_version_keeps_the_difference_and_shows_who_may_see_labels_theirs(
    labeled: Query, judge: Any, reviewer: Any, researcher: Any, client: Any, var_dir: Path
) -> None:
    first = made()
    assert first.difference == {}
    assert "This is the first version." in (first.directory / "difference.md").read_text()
    judge(labeled, 1, reviewer, "relevant")
    judge(labeled, 5, reviewer, "not_relevant")
    make_query(31, "a fox", split="val")
    second = made()
    assert second.difference["previous"]["version"] == 1
    assert [one["query_id"] for one in second.difference["added"]] == [31]
    counts = second.difference["judgments"]
    assert (counts["became_relevant"], counts["newly_judged"]) == (1, 1)
    shown = (second.directory / "difference_test.md").read_text()
    assert "1 query added." in shown
    assert "1 became relevant, 1 newly judged." in shown
    access = {one["name"]: one["access"] for one in second.file_list}
    assert (access["difference.md"], access["difference_test.md"]) == ("open", "labels")
    assert "## Judged pairs" not in (second.directory / "difference.md").read_text()
    assert "## Judged pairs" in shown
    for user, rows, withheld in ((reviewer, 1, None), (researcher, 0, True)):
        client.force_login(user)
        found = client.get(f"/api/releases/{second.pk}/").json()["difference"]
        assert (len(found["judgments_by_query"]), found.get("withheld")) == (rows, withheld)
        assert found["judgments"]["became_relevant"] == rows
        page = client.get(f"/releases/{second.pk}/").content.decode()
        assert ("Judged pairs by query" in page) == bool(rows)
        assert ("Changes to labels of the test split are withheld" in page) == bool(withheld)


def test_a_version_before_without_a_snapshot_is_reported(db: None, var_dir: Path) -> None:
    old = Release.objects.create(name="Birds")
    Release.objects.filter(pk=old.pk).update(
        made_at="2026-01-01T00:00:00Z", file_list=[{"name": "judgments.csv", "sha256": "0" * 64}]
    )
    release = made()
    assert (release.version, release.previous, release.difference) == (2, old, {})
    assert "made without a snapshot" in (release.directory / "difference.md").read_text()
