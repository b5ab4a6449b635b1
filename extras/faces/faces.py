"""Faces that a detector finds, proposed to reviewers as flags.

INQUIRE ran a face detector over iNat24 and looked at what it was sure of (appendix H.1).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PillowImage

from core.errors import Refused
from core.optional import optional
from retrieval.corpus.models import Image
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import is_withdrawn
from retrieval.flags.services import FlagRefused, image_flag_raise
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageGone, ImageRef, RootUnavailable, display_file

#: The confidence (0..1) of each face in an image (h, w, 3) of bytes, blue, green, red.
Detector = Callable[[np.ndarray], list[float]]


class NoDetector(Refused):
    """OpenCV's model isn't there."""


def opencv_detector(model: Path, least: float) -> Detector:
    """OpenCV's YuNet from its ONNX file; faces below `least` are left out. Raises NoDetector, or
    NotInstalled without OpenCV.
    """
    with optional("faces"):
        import cv2
    if not model.is_file():
        raise NoDetector(f"There is no file {model}.")
    try:
        yunet = cv2.FaceDetectorYN.create(str(model), "", (320, 320), least)
    except cv2.error as error:
        raise NoDetector(f"OpenCV can't load {model}: {error}") from None

    def detect(pixels: np.ndarray) -> list[float]:
        yunet.setInputSize(pixels.shape[1::-1])
        faces = yunet.detect(pixels)[1]
        return [] if faces is None else [float(face[-1]) for face in faces]

    return detect


def faces_propose(
    *, detect: Detector, by: Any, progress: Callable[[int, int], None] | None = None
) -> int:
    """Flag images in which a face is found as “person or face”, by `by`; returns how many. Images
    that this person has flagged so before, whatever came of it, and withdrawn ones are left out.
    """
    kind = ImageFlag.Kind.PERSON
    before = ImageFlag.objects.filter(kind=kind, raised_by=by).values("image")
    images = Image.objects.filter(~is_withdrawn()).exclude(pk__in=before).order_by("pk")
    total, flagged = images.count(), 0
    for done, image in enumerate(images.iterator(1000), start=1):
        try:
            with display_file(ImageRef.of(image)) as file, PillowImage.open(file) as opened:
                pixels = np.asarray(opened.convert("RGB"))[:, :, ::-1]
        except (ImageGone, ImageRefused, RootUnavailable, OSError):
            continue
        if faces := detect(np.ascontiguousarray(pixels)):
            note = f"{len(faces)} by a detector, the surest with {max(faces):.2f}"
            # Somebody may have withdrawn or deleted it meanwhile.
            with suppress(FlagRefused, Image.DoesNotExist):
                image_flag_raise(image=image, kind=kind, note=note, by=by)
                flagged += 1
        if progress:
            progress(done, total)
    return flagged
