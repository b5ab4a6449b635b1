"""How fast the corpus is embedded, compared with the model alone: `python -m bench.embedding`.

The whole task (files of a store, rows of a database, slices of a job) takes turns with a bare loop
of open_clip's `encode_image` in another process, over a batch in the device's memory, of the same
size and number format. A ratio compares a turn with the loops before and after it. The demo model
gets drawn scenes, the others photograph-like noise of iNat24's size; weights are random if a
model's name says so. Uses a GPU if torch has one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from PIL import Image as PillowImage

from bench import harness

HEAD: Final = (
    "Model | Batch | Format | Images a turn | Bare loop, images/s | Whole task, images/s"
    " | Whole / bare | Memory | Remark"
)
AIM: Final = {"cpu": 0.95, "cuda": 0.90}
#: The images of a turn, which takes about 20 s, and the batch size, by device and model.
SIZES: Final = {
    "cpu": {
        "demo": (6000, 64),
        "ViT-B-32/random": (300, 32),
        "ViT-H-14-378-quickgelu/random": (4, 1),
    },
    "cuda": {
        "demo": (30_000, 1024),
        "ViT-B-32/random": (30_000, 512),
        "ViT-H-14-378-quickgelu/random": (4000, 64),
    },
}
FILES: Final = 200
PHOTO: Final = (375, 500)
BARE_SECONDS: Final = 3.0
LEAST_COSINE: Final = 0.999


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether all vectors are there and those of their images, and how fast they were made."""
    rows, verdicts, devices = zip(
        *(_measure(name, options) for name in options.models), strict=True
    )
    return all(verdicts), [f"Device: {devices[0]}.", harness.table(HEAD, rows)]


def _measure(name: str, options: Any) -> tuple[list[Any], bool, str]:
    with harness.database() as (folder, task), harness.process(folder / "bare") as bare:
        kind, form, device = bare(_device)
        images, batch = SIZES[kind].get(name, (300, 32))
        images, batch = options.images or images, options.batch or batch
        harness.log(f"{name}: making images …")
        files = _files(folder / "files", drawn=name == "demo", count=min(FILES, images))
        task(_embed, name, files, 0, batch, batch)
        memory = [task(harness.anonymous_bytes)]
        loops, whole, count = [bare(_bare_rate, name, batch)], [], batch
        for number in range(options.turns):
            harness.log(f"{name}: turn {number + 1} of {options.turns}, batches of {batch} …")
            whole.append(images / task(_embed, name, files, count, images, batch))
            count += images
            memory.append(task(harness.anonymous_bytes))
            loops.append(bare(_bare_rate, name, batch))
        stored, vectors = task(_stored, name)
        right = stored == count and all(
            float(vector @ bare(_vector, name, files[number % len(files)])) > LEAST_COSINE
            for number, vector in vectors.items()
        )
    beside = [sum(pair) / 2 for pair in pairwise(loops)]
    ratio = median(rate / bare_rate for rate, bare_rate in zip(whole, beside, strict=True))
    remark = f"aim: {AIM[kind]:.2f}; the loops' range {min(loops):,.2f}–{max(loops):,.2f}"
    row = [
        *(name, batch, form, images, median(loops), median(whole), ratio),
        f"{harness.megabytes(memory[0])}, {(memory[-1] - memory[1]) / 1e6:+,.0f}",
        remark if right else f"{remark}; VECTORS ARE WRONG",
    ]
    return row, right, device


def _device() -> tuple[str, str, str]:
    """The device's kind, the number format of images there, and its name."""
    import torch

    if not torch.cuda.is_available():
        return "cpu", "fp32", f"the processor, {torch.get_num_threads()} threads"
    form = "bf16" if torch.cuda.is_bf16_supported() else "fp16"
    return "cuda", form, torch.cuda.get_device_name()


@cache
def _model(name: str) -> tuple[Any, Any]:
    from retrieval.encoding.encoders import load_open_clip

    model, preprocess, _ = load_open_clip(name, _device()[0])
    return model, preprocess


def _encoded(name: str, pixels: Any) -> Any:
    """Vectors (n, d) of prepared images (n, 3, height, width) by open_clip's own model."""
    import torch

    kind, form, _ = _device()
    half = torch.bfloat16 if form == "bf16" else torch.float16
    with torch.inference_mode(), torch.autocast(kind, half, enabled=kind == "cuda"):
        vectors = _model(name)[0].encode_image(pixels).float()
    return torch.nn.functional.normalize(vectors, dim=-1)


def _bare_rate(name: str, batch: int) -> float:
    """Images a second of the model alone, over a batch in the device's memory again and again."""
    import torch

    shape = _model(name)[1](PillowImage.new("RGB", PHOTO)).shape
    pixels = torch.randn((batch, *shape)).to(_device()[0])

    def run(batches: int) -> None:
        for _ in range(batches):
            _encoded(name, pixels)
        if pixels.is_cuda:
            torch.cuda.synchronize()

    run(1)
    batches = max(3, math.ceil(BARE_SECONDS / harness.seconds(run, 1)))
    return batch * batches / harness.seconds(run, batches)


def _vector(name: str, file: Path) -> np.ndarray:
    """The vector (d,) of one image by open_clip alone."""
    with PillowImage.open(file) as image:
        pixels = _model(name)[1](image.convert("RGB"))
    vector: np.ndarray = _encoded(name, pixels[None].to(_device()[0]))[0].cpu().numpy()
    return vector


def _files(folder: Path, *, drawn: bool, count: int) -> list[Path]:
    """`count` JPEG files: drawn scenes, or noise as large in pixels and bytes as iNat24's."""
    from demo.corpus import write_corpus

    if drawn:
        write_corpus(folder, count=count, seed=11)
        return sorted(folder.rglob("*.jpg"))[:count]
    folder.mkdir()
    files, random = [folder / f"{number}.jpg" for number in range(count)], np.random.default_rng(11)
    height, width = PHOTO
    for file in files:
        fields = PillowImage.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        smooth = fields.resize((width, height), PillowImage.Resampling.BICUBIC)
        pixels = np.asarray(smooth) + random.normal(0, 12, (height, width, 1))
        PillowImage.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, quality=85)
    return files


def _embed(name: str, files: Sequence[Path], first: int, count: int, batch: int) -> float:
    """Add `count` images from the id `first` on, repeating the files; returns the seconds of the
    whole task as a worker does it, slice by slice of a job until it is done.
    """
    from dataclasses import asdict

    from django.conf import settings

    from core.jobs.services import Slice, job_slice_run
    from retrieval.corpus.models import Image
    from retrieval.embedding.services import embedding_job_create
    from retrieval.images.storage import image_store

    settings.EMBEDDING_BATCH_SIZE = batch
    stored_images = [asdict(image_store(file.read_bytes())) for file in files]
    Image.objects.bulk_create(
        (
            Image(
                id=n,
                dataset="bench",
                source_id=str(n),
                file_name=f"{n}.jpg",
                **stored_images[n % len(stored_images)],
            )
            for n in range(first, first + count)
        ),
        batch_size=5000,
    )

    def run() -> None:
        job = embedding_job_create(model_name=name)
        while (outcome := job_slice_run(job_id=job.pk)) is Slice.MORE:
            pass
        if outcome is not Slice.FINISHED:
            job.refresh_from_db()
            raise RuntimeError(f"The job ended as {outcome.value}: {job.error}")

    return harness.seconds(run)


def _stored(name: str) -> tuple[int, dict[int, np.ndarray]]:
    """The number of vectors, and the last three images' vectors by id."""
    from retrieval.embedding.models import Embedding

    rows = Embedding.objects.filter(model__name=name).order_by("-image_id")
    return rows.count(), {row.image_id: np.array(row.vector) for row in rows[:3]}


if __name__ == "__main__":
    packages = ("torch", "torchvision", "open_clip_torch", "Pillow", "Django")
    models = tuple(SIZES["cpu"])
    # SIZES says what 0 stands for.
    harness.run(main, "Embedding", packages, models=models, images=0, batch=0, turns=3)
