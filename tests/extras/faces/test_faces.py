"""Faces that a detector proposes are flagged."""

from __future__ import annotations

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.optional import NotInstalled
from extras.faces.faces import NoDetector, faces_propose, opencv_detector
from retrieval.corpus.models import Image
from retrieval.flags.models import ImageFlag
from retrieval.flags.services import image_withdraw
from retrieval.images.storage import image_store
from tests.retrieval.making import image_row, jpeg

pytestmark = pytest.mark.django_db


def test_faces_are_flagged_once(tmp_path, settings, reviewer, admin):
    settings.VAR_DIR = tmp_path / "var"
    for number, color in enumerate(("red", "blue", "red"), start=1):
        image_row(number, sha256=image_store(jpeg(color, (60 + number, 40))).sha256)
    Image.objects.filter(pk=3).update(sha256="f" * 64)
    seen: list[tuple[int, ...]] = []

    def reds(pixels: np.ndarray) -> list[float]:
        seen.append(pixels.shape)
        return [0.91, 0.83] if pixels[0, 0, 2] > 200 else []

    assert faces_propose(detect=reds, by=reviewer) == 1
    flag = ImageFlag.objects.get()
    assert (flag.image_id, flag.kind) == (1, "person")
    assert flag.note == "2 by a detector, the surest with 0.91"
    assert [shape[2] for shape in seen] == [3, 3]
    ImageFlag.objects.update(
        state=ImageFlag.State.CLEARED, decided_by=admin, decided_at=timezone.now()
    )
    assert faces_propose(detect=reds, by=reviewer) == 0
    assert ImageFlag.objects.count() == 1


def test_an_image_that_leaves_meanwhile_stops_no_detector(tmp_path, settings, reviewer):
    settings.VAR_DIR = tmp_path / "var"
    for number in (1, 2, 3):
        image_row(number, sha256=image_store(jpeg("red", (60 + number, 40))).sha256)

    def leaving(pixels: np.ndarray) -> list[float]:
        if pixels.shape[1] == 61:
            image_withdraw(image=Image.objects.get(pk=1), by=reviewer)
        elif pixels.shape[1] == 62:
            Image.objects.get(pk=2).delete()
        return [0.9]

    assert faces_propose(detect=leaving, by=reviewer) == 1
    assert ImageFlag.objects.get().image_id == 3


def test_a_missing_detector_says_what_to_do(tmp_path, reviewer, annotator):
    # Without OpenCV, which is installed apart, that comes first.
    says = r"pip install 'inquire-annotator\[faces\]'|There is no file"
    with pytest.raises((NoDetector, NotInstalled), match=says):
        opencv_detector(tmp_path / "none.onnx", 0.8)
    with pytest.raises(CommandError, match=says):
        call_command("propose_faces", model=tmp_path / "none.onnx", by=reviewer.username)
    with pytest.raises(CommandError, match="no reviewer"):
        call_command("propose_faces", model=tmp_path / "none.onnx", by=annotator.username)
