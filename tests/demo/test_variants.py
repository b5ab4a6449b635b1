"""Damaged copies of the demo's model, and what a pool of them finds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from demo import steps
from demo.steps import demo_corpus_import, demo_people
from demo.training import variants
from demo.training.variants import pool_errors, round_robin, shares_found, write_variants
from retrieval.embedding.models import Embedding
from retrieval.encoding.model_specs import DEMO_MODEL_DIR, WEIGHTS_NAME, describe


def test_shares_of_orders_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "LABELS", (1, 2, 9))
    assert round_robin([[1, 2, 3], [3, 1, 2]]) == [1, 3, 2]
    found = shares_found([[1, 2, 3], [3, 2, 1]], {2, 3})
    assert found == {
        "one model (mean)": [0.25, 0.75, 1.0],
        "round robin": [0.0, 0.5, 1.0],
        "reciprocal rank fusion": [0.0, 0.5, 1.0],
    }


def test_errors_of_pools_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "POOLED", 2)
    # Relevant are 1, 4 and 5. By all labels the models have AP (1 + 2/4 + 3/5) / 3 = 0.7 and
    # (1/2 + 2/3 + 3/5) / 3 = 0.589; the first one's pool knows only 1, the second one's only 4.
    rankings = [[[1, 2, 3, 4, 5], [2, 4, 1, 3, 5]]]
    truth = [{1, 4, 5}]
    found = pool_errors(rankings, truth)
    first, second = 0.7, (1 / 2 + 2 / 3 + 3 / 5) / 3
    members = [100 * (1 - first), 100 * (1 / 2 - second)]
    others = [100 * (1 / 3 - second), 100 * (1 / 4 - first)]
    assert found["one model (mean)"] == pytest.approx(
        [sum(members) / 2, sum(others) / 2, (1 - 1) / 2]
    )
    # Both have image 2 among their first, and image 1: its place is the first and the third.
    fusion = found["all 2, fused"]
    assert fusion[0] == pytest.approx(100 * ((1 - first) + (1 / 3 - second)) / 2)
    assert fusion[2] == 1
    assert np.isnan(fusion[1])


@pytest.mark.django_db(transaction=True)
def test_the_script_embeds_by_each_copy_and_prints_what_is_found(
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(job: Job, progress: Any = None) -> None:
        while job.state in Job.UNFINISHED:
            job_slice_run(job_id=job.pk)
            job.refresh_from_db()
        assert job.state == Job.State.DONE, job.error

    settings.VAR_DIR = tmp_path
    for module, name, value in ((steps, "wait_for_job", work), (variants, "COUNT", 2)):
        monkeypatch.setattr(module, name, value)
    demo_people()
    demo_corpus_import(count=24, drawing=lambda *_: None, importing=lambda *_: None)
    variants.main()
    output = capsys.readouterr().out

    copies = write_variants(tmp_path / "demo_models")
    assert f"POOL_MODELS={copies[0]},{copies[1]}\n" in output
    assert re.search(r"reciprocal rank fusion +\d\.\d{3} +1\.000 +1\.000", output)
    assert re.search(r"all 2, fused +[+-]\d+\.\d +– ", output)
    assert Embedding.objects.count() == 48
    assert describe(str(copies[0])).dimension == describe("demo").dimension
    original, first, second = (
        load_file(folder / WEIGHTS_NAME)["text_projection"].astype(float)
        for folder in (DEMO_MODEL_DIR, *copies)
    )
    noise = (first - original).std() / original.std()
    assert noise == pytest.approx(variants.NOISE, rel=0.02)
    assert abs(np.corrcoef((first - original).ravel(), (second - original).ravel())[0, 1]) < 0.05
