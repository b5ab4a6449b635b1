"""How fast the corpus is embedded beside the model alone: `python -m bench.embedding`.

The whole task (files of a store, rows of a database, slices of a job) takes turns with a bare loop
of `encode_image`, of the model as open_clip makes it, over tensors that lie in the device's memory,
in batches of the same size and the same number format; and with such a loop of the program that the
task has made of the model (`ImageTower.quicken`, and by torch.compile where EMBEDDING_COMPILE says
so). A ratio is of one turn with the loops before and after it. The batch size is found by trial
beforehand, as every worker does when it begins. The demo model gets drawn scenes, the others
photograph-like noise of iNat24's size; weights are random where a model's name says so. Uses a
GPU where torch sees one. Each model has a process of its own, whose memory is looked at when the
task has run and the bare loop's model isn't loaded yet.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from PIL import Image as PillowImage

from bench.figures import grid, machine
from bench.harness import anonymous_bytes, megabytes
from bench.own_state import tell, use_state

PACKAGES: Final = ("torch", "torchvision", "open_clip_torch", "Pillow", "Django")
HEAD: Final = (
    *("Model", "Batch", "Format", "Images a turn"),
    *("Bare loop, images/s", "Task's program alone, images/s", "Whole task, images/s"),
    *("Whole / bare", "Whole / program", "Memory", "Remark"),
)
AIM: Final = {"cpu": 0.95, "cuda": 0.90}
#: Images in a turn where `--images` doesn't say: a turn takes about 20 s.
IMAGES: Final = {
    "cpu": {"demo": 6000, "ViT-B-32/random": 300, "ViT-H-14-378-quickgelu/random": 4},
    "cuda": {"demo": 30_000, "ViT-B-32/random": 30_000, "ViT-H-14-378-quickgelu/random": 4000},
}
FILES: Final = 200
PHOTO: Final = (375, 500)
BARE_SECONDS: Final = 3.0
TRIAL_BATCHES: Final = 64
LEAST_COSINE: Final = 0.999


@dataclass(frozen=True, slots=True)
class Turns:
    """What was measured of one model."""

    model: str
    batch: int
    precision: str
    images: int
    bare: list[float]
    """Images a second, one loop more than `whole` has turns."""
    program: list[float]
    """The same of the task's program alone."""
    whole: list[float]
    right: bool
    """Every image has one vector, and those looked at are the encoder's own."""
    memory: int
    """Anonymous memory in bytes of the process that embeds, after the batch size was found."""
    growth: int
    """By how much the process grew from the first turn to the last."""
    device: str
    aim: float

    def ratio(self, loops: list[float]) -> float:
        """The whole task's images a second, those of loops being one."""
        beside = [(a + b) / 2 for a, b in pairwise(loops)]
        return median(whole / alone for whole, alone in zip(self.whole, beside, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a vector is missing or isn't that of its image."""
    parser = argparse.ArgumentParser(prog="python -m bench.embedding", description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(IMAGES["cpu"]), metavar="NAME")
    parser.add_argument("--images", type=int, help="in a turn, whatever the model")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the database lies while it is needed")
    options = parser.parse_args(arguments)
    given = shlex.join(sys.argv[1:] if arguments is None else arguments)
    measured = []
    for name in options.models:
        with (
            tempfile.TemporaryDirectory(prefix="bench-embedding-", dir=options.folder) as folder,
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone,
        ):
            job = alone.submit(_measured, Path(folder), name, options.images, options.turns)
            measured.append(job.result())
    command = f"python -m bench.embedding {given}".strip()
    print(f"## Embedding\n\n{machine(PACKAGES)}\n\nDevice: {measured[0].device}. `{command}`\n")
    print(grid(HEAD, [_row(turns) for turns in measured]))
    return 0 if all(turns.right for turns in measured) else 1


def _measured(folder: Path, name: str, images: int | None, turns: int) -> Turns:
    # torch makes its compiler's folder, used or not.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "compiled")
    use_state(folder / "var")
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres
    from retrieval.encoding.encoders import default_device

    try:
        call_command("migrate", verbosity=0)
        return _model(name, images or IMAGES[default_device()].get(name, 300), turns, folder)
    finally:
        connection.close()
        embedded_postgres(folder / "var").leave(wait=True)


def _row(turns: Turns) -> list[str]:
    spread = "–".join(f"{rate:,.2f}" for rate in (min(turns.bare), max(turns.bare)))
    remark = f"aim: {turns.aim:.2f}; the loops' range {spread}"
    return [
        turns.model,
        str(turns.batch),
        turns.precision,
        f"{turns.images:,}",
        f"{median(turns.bare):,.2f}",
        f"{median(turns.program):,.2f}",
        f"{median(turns.whole):,.2f}",
        f"{turns.ratio(turns.bare):.2f}",
        f"{turns.ratio(turns.program):.2f}",
        f"{megabytes(turns.memory)}, {turns.growth / 1e6:+,.0f}",
        remark if turns.right else f"{remark}; VECTORS ARE WRONG",
    ]


def _model(name: str, images: int, turns: int, folder: Path) -> Turns:
    import torch

    from retrieval.embedding.pipeline import tuning_of
    from retrieval.encoding.device_thread import compute
    from retrieval.encoding.encoders import load_encoder, load_open_clip
    from retrieval.encoding.image_tower import ImageTower

    tell(f"{name}: loading the model and making pictures …")
    encoder = load_encoder(name)
    stored = _pictures(folder, drawn=name == "demo", count=min(FILES, images))
    tuning = tuning_of(encoder, name)
    count = 0
    tell(f"{name}: looking for the batch size …")
    while not tuning.size.settled:
        count = _more(count, trial_images(images, tuning.size.now), stored)
        _embed(name)
    memory = anonymous_bytes()
    plain, preprocess, _ = load_open_clip(name, encoder.device)
    bare_tower = ImageTower(plain, preprocess, encoder.device)
    batch = tuning.size.now
    pixels = torch.randint(
        0, 256, (batch, encoder.images.height, encoder.images.width, 3), dtype=torch.uint8
    )
    seen = encoder.images.floats(pixels.to(encoder.device))
    bare, program, whole, held = [], [], [], []

    def alone() -> None:
        bare.append(compute(encoder.device, lambda: _rate(bare_tower, seen.contiguous())))
        program.append(compute(encoder.device, lambda: _rate(encoder.images, seen)))

    alone()
    for number in range(turns):
        tell(f"{name}: turn {number + 1} of {turns}, batches of {batch} …")
        count = _more(count, images, stored)
        began = time.perf_counter()
        _embed(name)
        whole.append(images / (time.perf_counter() - began))
        held.append(anonymous_bytes())
        alone()
    return Turns(
        model=name,
        batch=batch,
        precision=encoder.precision,
        images=images,
        bare=bare,
        program=program,
        whole=whole,
        right=_is_right(encoder, name),
        memory=memory,
        growth=held[-1] - held[0],
        device=_device_name(encoder.device),
        aim=AIM[encoder.device.partition(":")[0]],
    )


def trial_images(images: int, batch: int) -> int:
    """How many images the next look for a batch size takes: so many that a slice's beginning, which
    is slow, tells little; no more than a turn has, but a whole batch, since part of one tells
    nothing.
    """
    return max(batch, min(images, TRIAL_BATCHES * batch))


def _embed(name: str) -> None:
    """Do the whole task as a worker does: slice after slice of a job, until it is done."""
    from core.jobs.services import Slice, job_slice_run
    from retrieval.embedding.services import embedding_job_create

    job = embedding_job_create(model_name=name)
    while (outcome := job_slice_run(job_id=job.pk)) is Slice.MORE:
        pass
    if outcome is not Slice.FINISHED:
        job.refresh_from_db()
        raise RuntimeError(f"The job ended as {outcome.value}: {job.error}")


def _rate(tower: Any, floats: Any) -> float:
    """Images a second of a model alone, over a batch in the device's memory again and again."""
    import torch

    def seconds(batches: int) -> float:
        began = time.perf_counter()
        for _ in range(batches):
            tower.encode(floats)
        if floats.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    seconds(1)
    batches = max(3, math.ceil(BARE_SECONDS / seconds(1)))
    return len(floats) * batches / seconds(batches)


def _pictures(folder: Path, *, drawn: bool, count: int) -> list[Any]:
    """Put `count` JPEG files into the store."""
    from demo.corpus import write_corpus
    from retrieval.images.storage import picture_store

    if drawn:
        scenes = folder / "scenes"
        write_corpus(scenes, count=count, seed=11)
        files = sorted(scenes.rglob("*.jpg"))[:count]
        return [picture_store(file.read_bytes()) for file in files]
    rng = np.random.default_rng(11)
    return [picture_store(_photo(rng)) for _ in range(count)]


def _photo(rng: np.random.Generator) -> bytes:
    """A JPEG of about iNat24's size in pixels and bytes: smooth fields with grain on them."""
    height, width = PHOTO
    fields = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    smooth = PillowImage.fromarray(fields).resize((width, height), PillowImage.Resampling.BICUBIC)
    grain = rng.normal(0, 12, (height, width, 1))
    pixels = np.clip(np.asarray(smooth) + grain, 0, 255).astype(np.uint8)
    target = io.BytesIO()
    PillowImage.fromarray(pixels).save(target, "JPEG", quality=85)
    return target.getvalue()


def _more(count: int, images: int, stored: list[Any]) -> int:
    """Add images to the corpus, the files over and over; how many there are now."""
    from retrieval.corpus.models import Image

    Image.objects.bulk_create(
        (
            Image(
                id=number,
                dataset="bench",
                source_id=str(number),
                file_name=f"{number}.jpg",
                sha256=file.sha256,
                format=file.format,
                width=file.width,
                height=file.height,
                size_bytes=file.size_bytes,
            )
            for number in range(count + 1, count + images + 1)
            for file in (stored[number % len(stored)],)
        ),
        batch_size=5000,
    )
    return count + images


def _is_right(encoder: Any, name: str) -> bool:
    from django.conf import settings

    from retrieval.corpus.models import Image
    from retrieval.embedding.models import Embedding
    from retrieval.images.decoding import open_picture
    from retrieval.images.stored import PictureRef, source_bytes

    rows = Embedding.objects.filter(model__name=name).select_related("image")
    if rows.count() != Image.objects.count():
        return False
    seen = list(rows.order_by("-image_id")[:3])
    pictures = []
    for row in seen:
        data = source_bytes(PictureRef.of(row.image))
        with open_picture(data, max_pixels=settings.IMAGE_MAX_PIXELS) as picture:
            pictures.append(picture.pixels)
    own = encoder.encode_images(pictures)
    stored = np.array([row.vector for row in seen])
    return bool(((own * stored).sum(axis=1) > LEAST_COSINE).all())


def _device_name(device: str) -> str:
    import torch

    if device == "cpu":
        return f"the processor, {torch.get_num_threads()} threads"
    return torch.cuda.get_device_name()


if __name__ == "__main__":
    sys.exit(main())
