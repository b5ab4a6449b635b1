"""ECCV Caption: imported from its package, scored as by its own Metrics, and its grades."""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from django.core.management import CommandError, call_command
from ir_measures import nDCG

from evaluation.runs.models import Run
from evaluation.scoring.evaluation import score_run
from evaluation.scoring.measures import parse_measures
from releases.importing.layout_files import layout_read
from releases.importing.services import benchmark_import
from releases.making.services import release_verify
from releases.models import Release
from releases.snapshot.snapshot import Snapshot
from tests.evaluation.runs import rankings

with warnings.catch_warnings():
    # It would like to have ujson.
    warnings.simplefilter("ignore")
    import eccv_caption

DATA = Path(eccv_caption.__file__).parent / "data"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("var_dir")]


def snapshot_of(release: Release) -> Snapshot:
    return Snapshot(release.directory / "snapshot")


def test_the_package_s_own_metrics_give_the_same_scores(tmp_path: Path) -> None:
    layout = layout_read(DATA)
    # Table 3 of the paper.
    assert (len(layout.queries), len(layout.pairs)) == (1332, 11279)
    metrics = eccv_caption.Metrics()
    images = sorted(metrics.coco_gts["i2t"])
    draw = random.Random(5)
    chosen = draw.sample(sorted(metrics.eccv_gts["t2i"]), 60)
    truth = {caption: metrics.eccv_gts["t2i"][caption] for caption in chosen}
    orders = {}
    for caption, relevant in truth.items():
        weights = {image: draw.random() + 0.2 * (image in relevant) for image in images}
        orders[caption] = sorted(images, key=lambda image: -weights[image])[:400]
    metrics.eccv_gts = {"t2i": truth}
    theirs = metrics.eccv_metrics({"t2i": orders}, "t2i")
    folder = tmp_path / "ECCV Caption"
    folder.mkdir()
    (folder / "eccv_caption_to_image.json").write_text(json.dumps(truth))
    qrels = snapshot_of(benchmark_import(directory=folder).release).qrels()
    ours = score_run(rankings(orders), qrels, parse_measures(["AP@R", "Rprec", "Success@1"]))
    for key, name in (
        ("AP@R", "eccv_map_at_r"),
        ("Rprec", "eccv_rprecision"),
        ("Success@1", "eccv_r1"),
    ):
        assert 0.05 < theirs[name]["t2i"] < 0.95
        assert ours[key].mean() == pytest.approx(theirs[name]["t2i"], abs=1e-9)


def write(folder: Path, **files: Any) -> Path:
    """A small ECCV Caption with texts and grades."""
    content = {
        "eccv_caption_to_image": {"7": [1, 2, 3, 4], "9": ["2"]},
        "captions_val2014": {
            "annotations": [{"id": 7, "caption": "A fox.\n"}, {"id": 9, "caption": "A cat, asleep"}]
        },
    } | files
    folder.mkdir()
    for name, value in content.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    rows = [
        *("7,1,1", "7,1,2", "7,1,2", "7,2,1", "7,3,4", "7,5,3", "7,5,4", "7,5,3", "7,6,4"),
        *("9,2,2", "9,8,1", "8,1,1", "nan,1,1"),
    ]
    header = "model,ranking,score,cid,iid,annotation,shortcoming,shortcoming2"
    lines = [header, *(f"clip,{place},0.5,{row},," for place, row in enumerate(rows))]
    (folder / "mturk_parsed.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_grades_and_texts_are_kept(tmp_path: Path, admin: Any) -> None:
    folder = write(tmp_path / "eccv")
    release = benchmark_import(directory=folder, test_labels="public", created_by=admin).release
    snapshot = snapshot_of(release)
    assert [one.text for one in snapshot.queries.values()] == ["A fox.", "A cat, asleep"]
    pairs = {(one.query_id, one.image_id): (one.relevant, one.grade) for one in snapshot.pairs()}
    assert pairs == {
        # Medians of those on the label's side, rounded down; one that nobody graded, and one whose
        # only grade is on the other side.
        (7, 1): (True, 2), (7, 2): (True, 3), (7, 3): (True, None), (7, 4): (True, None),
        (7, 5): (False, 1), (7, 6): (False, 0), (9, 2): (True, 2),
    }  # fmt: skip
    assert snapshot.header.negatives_known
    assert release_verify(release=release) == []
    graded = release.directory / "trec" / "qrels_graded_test.txt"
    assert graded.read_text().splitlines() == [
        *("7 0 1 2", "7 0 2 3", "7 0 3 3", "7 0 4 3", "7 0 5 1", "7 0 6 0", "9 0 2 2"),
    ]
    orders = {7: [6, 5, 1, 9, 3, 2], 9: [1, 2]}
    [key] = parse_measures(["nDCG@5"])
    ours = score_run(rankings(orders), snapshot.qrels(), [key])["nDCG@5"]
    run = {
        str(query): {str(image): -place for place, image in enumerate(order)}
        for query, order in orders.items()
    }
    qrels = list(ir_measures.read_trec_qrels(str(graded)))
    theirs = {one.query_id: one.value for one in ir_measures.iter_calc([nDCG @ 5], qrels, run)}
    assert ours.tolist() == pytest.approx([theirs["7"], theirs["9"]], abs=1e-9)
    assert not Run.objects.exists()


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"eccv_caption_to_image": {"x": [1]}}, "eccv_caption_to_image.json, line 1, x: is not"),
        ({"eccv_caption_to_image": {"7": 1}}, "eccv_caption_to_image.json, line 1, 7: is not"),
        ({"captions_val2014": {"annotations": [1]}}, "captions_val2014.json, line 1, annotations"),
    ]
    for number, (files, says) in enumerate(wrong):
        with pytest.raises(CommandError, match=says):
            call_command("import_benchmark", str(write(tmp_path / str(number), **files)))
    assert not Release.objects.exists()
