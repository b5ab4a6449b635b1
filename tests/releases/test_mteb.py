"""The folder mteb/, which mteb 2 itself runs offline."""

import hashlib
import io
import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from PIL import Image

from releases.formats import inquire_csv, mteb
from releases.formats.base import Access
from tests import ROOT
from tests.releases.snapshots import (
    format_files,
    header,
    image,
    pair,
    query,
    toy_image_files,
    toy_snapshot,
    write_snapshot,
)

IMAGES = 60


@pytest.fixture
def drawn(tmp_path):
    """Images of two colors each, 1 to 60, of which nobody judged the last 12; and their files."""
    files = {}
    for number in range(1, IMAGES + 1):
        drawing = Image.new("RGB", (40, 30), (number * 37 % 256, number * 91 % 256, 120))
        drawing.paste((number * 53 % 256, 200, number * 29 % 256), (0, 0, number % 17 + 9, 20))
        file = io.BytesIO()
        drawing.save(file, "PNG")
        files[hashlib.sha256(file.getvalue()).hexdigest()] = file.getvalue()
    images = [image(number, sha256=sha) for number, sha in enumerate(files, start=1)]
    return images, lambda image_id, path, sha256: files[sha256]


def test_mteb_gets_the_scores_of_the_same_ranking(tmp_path, drawn, tiny_model):
    images, find = drawn
    texts = [
        "a fox",
        "an owl at night",
        "a newt in water",
        "two storks",
        "nothing of this",
        "a bee",
    ]
    queries = [
        query(number, text, split="val" if number % 2 else "test")
        for number, text in enumerate(texts, start=1)
    ]
    # Query 5 has no relevant image.
    pairs = [
        pair(number, one, number != 5 and one % (number + 3) == 0)
        for number in range(1, 7)
        for one in range(number, IMAGES - 11)
    ]
    snapshot = write_snapshot(
        tmp_path / "snapshot", header=header(include_images=True), queries=queries, pairs=pairs,
        images=images,
    )  # fmt: skip
    for write in (inquire_csv.write, mteb.write):
        format_files(write, snapshot, tmp_path / "release", find)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    module = [sys.executable, "-m", "tests.releases.mteb_run"]
    out = tmp_path / "out"
    subprocess.run(
        [*module, tmp_path / "release/mteb", tiny_model, out],
        env={**os.environ, **offline, "MTEB_CACHE": str(tmp_path / "cache")},
        cwd=ROOT, check=True, timeout=120,
    )  # fmt: skip
    scores = json.loads((out / "scores.json").read_text())
    assert set(scores) == {"validation", "test"}
    [predictions] = out.rglob("*_predictions.json")
    rankings = json.loads(predictions.read_text())["default"]
    for split, name in (("val", "validation"), ("test", "test")):
        assert {len(ranking) for ranking in rankings[name].values()} == {IMAGES}
        run = tmp_path / f"{split}.txt"
        run.write_text(
            "".join(
                f"{query_id} Q0 {image_id} 1 {score!r} mteb\n"
                for query_id, ranking in rankings[name].items()
                for image_id, score in ranking.items()
            )
        )
        ours = evaluated(run, tmp_path / "release", split)
        theirs = scores[name]
        assert theirs["exact_ndcg_at_10"] == pytest.approx(ours["nDCG@10"], abs=1e-6)
        assert theirs["exact_map"] == pytest.approx(ours["AP"], abs=1e-6)
        assert theirs["inquire_map_at_50"] == pytest.approx(ours["AP@50"], abs=1e-6)
        # mteb rounds its own.
        assert theirs["main_score"] == theirs["ndcg_at_10"]
        for score, measure in (
            ("ndcg_at_10", "nDCG@10"),
            ("map_at_1000", "AP"),
            ("map_at_50", "UncappedAP@50"),
            ("recall_at_50", "R@50"),
            ("precision_at_50", "P@50"),
            ("mrr_at_50", "RR@50"),
            ("hit_rate_at_1", "Success@1"),
        ):
            assert theirs[score] == pytest.approx(ours[measure], abs=1e-5), score
        assert 0 < ours["AP"] < 1


def evaluated(run, release, split):
    """The means that `evaluate` prints."""
    output = io.StringIO()
    measures = "nDCG@10,AP,AP@50,UncappedAP@50,R@50,P@50,RR@50,Success@1"
    options = ["--split", split, "--measures", measures, "--ties", "trec_eval", "--json"]
    call_command("evaluate", str(run), "--release", str(release), *options, stdout=output)
    return json.loads(output.getvalue())["mean"]


@pytest.mark.pure
def test_refused_images_and_hidden_labels_are_in_no_file(tmp_path):
    find, digests = toy_image_files(tmp_path / "pictures", 9)
    values = {"digests": digests, "include_images": True, "test_labels": "hidden"}
    snapshot = toy_snapshot(tmp_path / "snapshot", **values)
    files = format_files(mteb.write, snapshot, tmp_path, find)
    data = "data/{}-00000-of-00001.parquet"
    assert [file.name for file in files] == [
        "mteb/README.md",
        f"mteb/corpus/{data.format('corpus')}",
        f"mteb/qrels/{data.format('validation')}",
        f"mteb/query/{data.format('test')}",
        f"mteb/query/{data.format('validation')}",
        "mteb/task.py",
    ]
    assert {file.access for file in files} == {Access.OPEN}
    corpus = pq.read_table(tmp_path / files[1].name)
    assert corpus["id"].to_pylist() == ["1", "2", "5", "6", "7", "9"]
    assert pq.read_table(tmp_path / files[2].name).to_pydict() == {
        "query-id": ["3", "3", "21"],
        "corpus-id": ["1", "2", "9"],
        "score": [1, 1, 1],
    }
    assert 'eval_splits=["validation"]' in (tmp_path / "mteb/task.py").read_text(encoding="utf-8")
    card = (tmp_path / "mteb/README.md").read_text(encoding="utf-8")
    assert "6 images of 12 may not be passed on or can't be read" in card
    # Releases that an earlier version made have no such folder.
    earlier = toy_snapshot(tmp_path / "earlier/snapshot", formats=2, **values)
    assert format_files(mteb.write, earlier, tmp_path / "earlier", find) == []
