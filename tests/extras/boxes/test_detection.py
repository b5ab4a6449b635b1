"""Runs of detectors: their figures, what is refused, who does what, and hidden test labels."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from core.errors import Invalid
from extras.boxes.coco import detections
from extras.boxes.detection import FIGURES, figures_of, read_results
from extras.boxes.models import DetectionRun
from extras.boxes.services import boxes_ask, boxes_save
from labeling.lifecycle.services import query_transition
from releases.making.services import release_claim, release_make
from releases.models import Release
from retrieval.corpus.models import Image
from tests.conftest import client_of, person
from tests.labeling.conftest import FIRST_ID, make_images, run_jobs
from tests.labeling.judging import judge

pytestmark = pytest.mark.django_db

ROW = (7, 3, [100.0, 100.0, 100.0, 100.0], False)


def truth_with(*rows: tuple[int, int, list[float], bool]) -> dict[str, Any]:
    categories = sorted({row[1] for row in rows})
    return detections(
        "toy",
        [{"id": key, "name": f"query {key}"} for key in categories],
        [{"id": key, "width": 640, "height": 480} for key in sorted({row[0] for row in rows})],
        rows,
    )


def result(image: int, category: int, bbox: list[float], score: float = 0.9) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": bbox, "score": score}


def test_figures_of_boxes_by_hand() -> None:
    truth = truth_with(ROW)
    # Half of 100 × 100 is medium.
    perfect = figures_of(truth, [result(*ROW[:3])])
    assert [name for name, value in perfect.items() if value is None] == [
        "AP small", "AP large", "AR small", "AR large",
    ]  # fmt: skip
    assert {round(value, 9) for value in perfect.values() if value is not None} == {100}
    # Shifted by a tenth, the IoU is 90 / 110 = 0.82: enough for 7 of the 10 from 0.50 to 0.95.
    shifted = figures_of(truth, [result(7, 3, [110.0, 100.0, 100.0, 100.0])])
    for name, percent in {"AP": 70, "AP50": 100, "AP75": 100, "AP medium": 70, "AR1": 70}.items():
        assert shifted[name] == pytest.approx(percent), name
    # Of two boxes, one is found, and the better scored one is wrong.
    two = truth_with(ROW, (8, 3, [0.0, 0.0, 50.0, 50.0], False))
    half = figures_of(two, [result(8, 3, [300.0, 300.0, 9.0, 9.0]), result(*ROW[:3], score=0.5)])
    assert half["AR100"] == pytest.approx(50)
    # Precision 1/2 at the recalls from 0 to 0.50, 51 of COCO's 101.
    assert half["AP"] == pytest.approx(100 * 51 / 101 / 2)


def test_figures_equal_those_of_pycocotools_over_all_pairs() -> None:
    drawn = random.Random(4)

    def bbox() -> list[float]:
        return [drawn.uniform(0, 400) for _ in "xy"] + [drawn.uniform(10, 250) for _ in "wh"]

    rows = [
        (drawn.randrange(1, 30), drawn.randrange(1, 12), bbox(), drawn.random() < 0.1)
        for _ in range(150)
    ]
    truth = truth_with(*rows)
    found = []
    for _ in range(400):
        image, category, near, _group = drawn.choice(rows)
        near = [max(side + drawn.gauss(0, 8), 2) for side in near]
        found.append(result(image, drawn.choice([category, 5]), near, drawn.random()))
    figures = figures_of(truth, [dict(one) for one in found])
    with redirect_stdout(StringIO()):
        true = COCO()
        true.dataset = truth
        true.createIndex()
        scored = COCOeval(true, true.loadRes(found), "bbox")
        scored.evaluate()
        scored.accumulate()
        scored.summarize()
    assert list(figures) == list(FIGURES)
    assert [value and value / 100 for value in figures.values()] == pytest.approx(
        scored.stats.tolist(), abs=1e-12
    )
    assert len({*figures.values()}) > 8


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[1", "isn't JSON"),
        ("[" * 100_000, "isn't JSON"),
        ({"annotations": []}, "A list of"),
        ([], "A list of"),
        (["box"], "Entry 2: it isn't an object"),
        ([result(8, 3, [0, 0, 1, 1])], "Entry 2: the release has no boxes of image_id 8"),
        ([result(7, 4, [0, 0, 1, 1])], "Entry 2: the release has no boxes of category_id 4"),
        ([result(7, True, [0, 0, 1, 1])], "category_id True"),
        ([{"image_id": [7]}], r"image_id \[7\]"),
        ([result(7, 3, [0, 0, 1])], "Entry 2: bbox isn't four numbers"),
        ([result(7, 3, [0, 0, 1, float("nan")])], "Entry 2: bbox isn't four numbers"),
        ([result(7, 3, [0, 0, 1, 0])], "Entry 2: the box has no width or no height"),
        ([result(7, 3, [0, 0, 1, 1], score="0.9")], "Entry 2: score isn't a number"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_wrong_entry(wrong: Any, said: str) -> None:
    right = result(7, 3, [0, 0, 1, 1]) | {"segmentation": []}
    if isinstance(wrong, list) and wrong:
        wrong = [right, *wrong]
    data = wrong if isinstance(wrong, str) else json.dumps(wrong)
    with pytest.raises(Invalid, match=said):
        read_results(data.encode(), truth_with(ROW))
    read = read_results(json.dumps([right]).encode(), truth_with(ROW))
    assert read == [result(7, 3, [0, 0, 1, 1])]


@pytest.fixture
def make_release(
    var_dir: Path, open_query: Any, annotator: Any, admin: Any, settings: Any
) -> Callable[..., Release]:
    """A release with a box of the validation query 1 on the first image, and one of the test query
    2 on the second."""
    settings.BOX_SECOND_OPINION = 0.0
    make_images(3)
    Image.objects.update(width=300, height=300)
    for number, split in enumerate(("val", "test")):
        query = open_query(f"a toad {number}", query_id=number + 1, split=split)
        boxes_ask(query=query, images="all", by=admin)
        judge(query, annotator, [number], "relevant")
        query = query_transition(query=query, to_state="complete", by=admin, note="done")
        boxes_save(
            query=query,
            image_id=FIRST_ID + number,
            boxes=[{"bbox": ROW[2], "group": False}],
            annotator=annotator,
            client_id=uuid4(),
        )

    def make(test_labels: str, name: str = "Toads") -> Release:
        options = {"rerank_model": "", "test_labels": test_labels}
        return release_make(release=release_claim(name=name, created_by=admin, options=options))

    return make


VAL, TEST = result(FIRST_ID, 1, ROW[2]), result(FIRST_ID + 1, 2, ROW[2])


def send(client: Any, release: Release, *results: Any, name: str = "ours") -> str:
    upload = SimpleUploadedFile("results.json", json.dumps(results).encode())
    answer = client.post(
        f"/releases/{release.pk}/detection/", {"name": name, "file": upload}, follow=True
    )
    page: str = answer.content.decode()
    return page


def test_where_test_labels_are_hidden_runs_are_scored_on_the_validation_boxes(
    make_release: Callable[..., Release], clients: dict[str, Any], researcher: Any
) -> None:
    release = make_release("hidden")
    page = f"/releases/{release.pk}/detection/"
    client = client_of(researcher)
    for role, status in (("annotator", 403), ("reviewer", 200), ("admin", 200)):
        assert clients[role].get(page).status_code == status
    assert clients["annotator"].post(page).status_code == 403
    assert "scored on the validation queries alone" in client.get(page).content.decode()
    board = client.get(f"/releases/{release.pk}/leaderboard/").content.decode()
    assert f'href="{page}">Detection</a>' in board

    # Whoever sends it: nothing is learned of the test queries' boxes.
    for sender in (client, clients["reviewer"]):
        assert f"Entry 2: the release has no boxes of image_id {FIRST_ID + 1}" in send(
            sender, release, VAL, TEST
        )
    assert not DetectionRun.objects.exists()
    assert "ours" in send(client, release, VAL)
    run = DetectionRun.objects.get()
    assert (run.owner, run.figures) == (researcher, None)
    assert f"detection/{run.pk}/" in client.get(page).content.decode()
    assert "ours" not in clients["reviewer"].get(page).content.decode()
    run_jobs()
    run.refresh_from_db()
    assert (run.results, run.figures["AP"]) == (None, pytest.approx(100))
    assert '<td class="numeric">100.0</td>' in clients["reviewer"].get(page).content.decode()


def test_public_labels_count_whole_and_the_best_stands_first(
    make_release: Callable[..., Release], clients: dict[str, Any], researcher: Any
) -> None:
    release = make_release("public")
    client, other = client_of(researcher), person("ruth", "researcher")
    send(client, release, VAL, name="one of two")
    send(client_of(other), release, VAL, TEST, name="both")
    run_jobs()
    page = client.get(f"/releases/{release.pk}/detection/").content.decode()
    assert page.index("both") < page.index("one of two")
    assert '<td class="numeric">50.0</td>' in page
    assert "validation queries" not in page

    # Each deletes their own, admins any.
    first, second = DetectionRun.objects.order_by("pk")
    for sender, run, status in (
        (client, second, 403), (clients["reviewer"], first, 403),
        (clients["annotator"], first, 403),
        (client, first, 302), (clients["admin"], second, 302), (clients["admin"], second, 404),
    ):  # fmt: skip
        answer = sender.post(f"/releases/{release.pk}/detection/{run.pk}/")
        assert answer.status_code == status
    assert not DetectionRun.objects.exists()


def test_uploads_have_limits(
    make_release: Callable[..., Release], researcher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, client = make_release("hidden"), client_of(researcher)
    assert "can be printed" in send(client, release, VAL, name="o\u202eurs")
    for number in range(10):
        send(client, release, VAL, name=f"run {number}")
    assert "10 of your files aren" in send(client, release, VAL)
    # One that was deleted while its job waited leaves nothing to do.
    DetectionRun.objects.order_by("pk")[0].delete()
    run_jobs()
    assert DetectionRun.objects.filter(figures__isnull=False).count() == 9
    monkeypatch.setattr("extras.boxes.detection_runs.LARGEST_UPLOAD", 2**5)
    assert "The file has more than" in send(client, release, VAL)


def test_a_release_without_boxes_takes_none(
    make_release: Callable[..., Release], researcher: Any
) -> None:
    release, client = make_release("hidden"), client_of(researcher)
    (release.directory / "coco/boxes_val.json").unlink()
    page = client.get(f"/releases/{release.pk}/detection/").content.decode()
    assert "It has no boxes of validation queries." in page
    send(client, release, VAL)
    assert not DetectionRun.objects.exists()
    board = client.get(f"/releases/{release.pk}/leaderboard/").content.decode()
    assert "Detection" not in board


def test_the_command_prints_the_twelve_figures(
    make_release: Callable[..., Release], tmp_path: Path
) -> None:
    release = make_release("hidden")

    def printed(of: object, *results: Any, **options: Any) -> list[str]:
        (tmp_path / "results.json").write_text(json.dumps(results))
        out = StringIO()
        call_command("evaluate_boxes", tmp_path / "results.json", release=of, stdout=out, **options)
        return out.getvalue().splitlines()

    lines = printed("Toads", VAL)
    assert [line[:10].strip() for line in lines] == list(FIGURES)
    assert [line.split()[-1] for line in lines] == [
        "50.0", "50.0", "50.0", "–", "50.0", "–", "50.0", "50.0", "50.0", "–", "50.0", "–",
    ]  # fmt: skip
    assert printed(str(release.directory), VAL) == lines
    assert printed("Toads v1", VAL, val=True)[0].split() == ["AP", "100.0"]
    for of, results, said in (
        ("Frogs", [VAL], "no release"), ("Toads", [7], "Entry 1"),
        (str(tmp_path), [VAL], "No such file"),
    ):  # fmt: skip
        with pytest.raises(CommandError, match=said):
            printed(of, *results)
