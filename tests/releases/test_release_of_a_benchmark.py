"""Releases hold the queries of one benchmark, and name it where there are two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from core.errors import Conflict
from evaluation.runs.corpus import in_corpus
from labeling.audits.models import ReleaseKey
from labeling.lifecycle.benchmarks import benchmark_save
from labeling.lifecycle.services import query_transition
from labeling.lifecycle.splitting import queries_split
from labeling.queries.models import Benchmark, Query, default_benchmark
from releases import selectors
from releases.making import services
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from retrieval.corpus.models import Image, Species
from tests.conftest import api_of, client_of
from tests.releases.toy import make_list, make_query


def made(name: str, benchmark: Benchmark | None = None) -> Release:
    claimed = services.release_claim(
        name=name, created_by=None, options={"rerank_model": ""}, benchmark=benchmark
    )
    return services.release_make(release=claimed)


def test_a_release_holds_the_queries_of_its_benchmark(
    images: list[Image],
    judge: Any,
    annotator: Any,
    reviewer: Any,
    admin: Any,
    settings: Any,
    var_dir: Path,
    tmp_path: Path,
) -> None:
    settings.RELEASE_AUDIT_SHARE = 0.5
    first = Benchmark.objects.get(pk=default_benchmark())

    def query(query_id: int, **values: Any) -> Query:
        """A complete one whose audit for the release is drawn, with two judgments."""
        found = make_query(query_id, f"query {query_id}", state=Query.State.OPEN, **values)
        make_list(found, [1, 2, 3, 4, 5, 6])
        judge(found, 1, annotator, "relevant")
        judge(found, 2, annotator, "not_relevant")
        for state in ("submitted", "complete"):
            found = query_transition(query=found, to_state=state, by=reviewer, note="enough")
        return found

    frogs = query(1, guidelines="Whole animals.")
    alone = made("Frogs")
    assert "benchmark" not in Snapshot(alone.snapshot_directory).header_data
    assert "benchmark" not in json.loads((alone.directory / "manifest.json").read_text())["release"]

    frog, newt, toad = (
        Species.objects.create(scientific_name=name, genus=name) for name in ("Rana", "Tri", "Bufo")
    )
    second = benchmark_save(
        by=admin,
        name="Newts and co",
        guidelines="Count every newt.",
        species=[newt, toad],
        settings={"CERTIFICATE_CONFIDENCE": 0.8},
    )
    newts = query(2, benchmark=second, guidelines="Whole newts.")
    filtered = query(3, benchmark=second)
    filtered.species.set([frog, newt])
    query(4)
    # Each benchmark has a key of its own, which only its own releases publish.
    keys = [one.release_audits.get().release_key for one in (newts, filtered)]
    assert keys[0] == keys[1] != frogs.release_audits.get().release_key
    again = made("Frogs")
    assert (again.benchmark, again.previous) == (first, alone)
    assert again.header["benchmark"] == "Benchmark"
    assert ReleaseKey.objects.get(pk=keys[0].pk).ended_at is None
    with pytest.raises(ValidationError, match="holds queries of Benchmark; choose another name"):
        made("Frogs", second)
    with pytest.raises(ValidationError, match="Name a benchmark: there are 'Benchmark', 'Newts"):
        made("Newts")
    Image.objects.filter(pk__in=[2, 3]).update(species=newt)
    release = made("Newts", second)
    # Its runs rank the images of its filter, which can't change from now on.
    assert (release.header["corpus_images"], release.header["corpus_species"]) == (2, 1)
    assert in_corpus(release, np.array([1, 2, 3])).tolist() == [False, True, True]
    assert in_corpus(again, np.array([1, 2, 3])).all()
    with pytest.raises(Conflict, match="Releases rank the images of its filter"):
        benchmark_save(benchmark=second, by=admin, name="Newts", species=[newt])
    assert ReleaseKey.objects.get(pk=keys[0].pk).ended_at is not None

    snapshot = Snapshot(release.snapshot_directory)
    for one, numbers in ((alone, [1]), (again, [1, 4]), (release, [2, 3])):
        assert list(Snapshot(one.snapshot_directory).queries) == numbers
    assert release.previous is None
    for table in (snapshot.pairs(), snapshot.judgments(), snapshot.vectors(),
                  snapshot.release_audits(), snapshot.audited()):  # fmt: skip
        assert {one.query_id for one in table} == {2, 3}
    texts = {key: (one.species, one.guidelines) for key, one in snapshot.queries.items()}
    assert texts == {
        2: (["Bufo", "Tri"], "Count every newt.\n\nWhole newts."),
        3: (["Tri"], "Count every newt."),
    }
    assert (snapshot.header.benchmark, snapshot.header.confidence) == ("Newts and co", 0.8)
    manifest = json.loads((release.directory / "manifest.json").read_text())
    assert manifest["release"]["benchmark"] == "Newts and co"
    sheet = (release.directory / "DATASHEET.md").read_text()
    assert "Its queries are those of the benchmark Newts and co." in sheet
    assert "benchmark Newts" not in (again.directory / "DATASHEET.md").read_text()
    assert [services.release_verify(release=one) for one in (alone, again, release)] == [[], [], []]

    api = api_of(admin)
    refused = api.post("/api/releases/", {"name": "X"}, format="json")
    assert refused.status_code == 400
    body = {"name": "X", "benchmark": second.pk}
    assert api.post("/api/releases/", body, format="json").json()["benchmark"] == {
        "id": second.pk, "name": "Newts and co",
    }  # fmt: skip
    found = api.get("/api/releases/", {"benchmark": second.pk}).json()["results"]
    assert [one["name"] for one in found] == ["X", "Newts"]
    page = client_of(admin).get("/releases/?name=Newts").content.decode()
    assert f'<option value="{second.pk}" selected>Newts and co</option>' in page
    answer = client_of(admin).post("/releases/", {"name": "Y", "benchmark": second.pk})
    assert selectors.releases().get(name="Y").benchmark == second, answer
    with pytest.raises(CommandError, match="Name a benchmark"):
        call_command("export_release", "Z", str(tmp_path / "z"), new=True)
    call_command("export_release", "Z", str(tmp_path / "z"), new=True, benchmark="Newts and co")
    assert Release.objects.get(name="Z").test_queries == 2
    Query.objects.update(split_settled=False)
    Release.objects.filter(made_at=None).delete()
    queries_split(val_share=1, seed=0, benchmark=second, redraw=True, released={})
    assert [one.split for one in Query.objects.all()] == ["test", "val", "val", "test"]
