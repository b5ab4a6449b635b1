"""How fast free-text search answers: `python -m bench.text_search`.

What a text's vector takes: alone, remembered, four asked for at once, and four in one forward pass,
which the application doesn't use, since its vectors are not those of the texts alone; how many are,
after rounding to half precision, is counted. Then, for each size a database of its own with
clustered vectors: the best images by the packed matrix, by the database's scan and by an
approximate index of each kind, with what the index finds of the exact best, what it takes to build,
and how much longer embeddings take to store while it is there; and the whole request of the page.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import grid, machine, ms
from bench.own_state import tell
from bench.text_encoding import AT_ONCE
from bench.text_search_size import STORED, TEXT_MODEL

MODELS: Final = (TEXT_MODEL, "ViT-B-32/random")
PACKAGES: Final = ("torch", "open-clip-torch", "pgvector", "numpy")
WAYS: Final = {
    "matrix": "packed matrix, exact",
    "scan": "database's scan, exact",
    "halfvec": "HNSW of the vectors",
    "binary": "HNSW of the signs, 10 × re-ranked",
}
_TEXT_HEAD: Final = (
    "Model",
    "Alone",
    "Remembered",
    f"{AT_ONCE} at once, each",
    f"{AT_ONCE} in one pass, each",
    "of these the same in half precision",
)
_HEAD: Final = (
    "Images",
    "Found by",
    "Median",
    "95 %",
    "× packed matrix",
    "Recall",
    "Built in",
    "Size",
    f"Storing {STORED:,} more, × without index",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the matrix' lists are not the database's."""
    parser = argparse.ArgumentParser(prog="python -m bench.text_search", description=__doc__)
    parser.add_argument("--images", type=_numbers, default=(100_000,), help="sizes: 100000,…")
    parser.add_argument("--dimension", type=int, default=256)
    parser.add_argument("--searches", type=int, default=50, help="for each way (default: 50)")
    parser.add_argument("--depth", type=int, default=50, help="images found (default: 50)")
    parser.add_argument("--models", default=",".join(MODELS), help=f"default: {','.join(MODELS)}")
    parser.add_argument("--texts", type=int, default=40, help="for each way (default: 40)")
    parser.add_argument("--folder", type=Path, help="where the databases lie while they are needed")
    options = parser.parse_args(arguments)
    given = shlex.join(sys.argv[1:] if arguments is None else arguments)
    with tempfile.TemporaryDirectory(prefix="bench-text-", dir=options.folder) as folder:
        encoded = {}
        for model in options.models.split(","):
            tell(f"{model}: texts …")
            encoded[model] = _child(Path(folder), "text_encoding", model, str(options.texts))
        found = {images: _size(Path(folder), images, options) for images in options.images}
    parts = [
        "## Text search",
        machine(PACKAGES),
        f"`python -m bench.text_search {given}`".replace(" `", "`"),
        "What a text's vector takes:",
        grid(_TEXT_HEAD, [_text_row(model, one) for model, one in encoded.items()]),
        f"The best {options.depth} of clustered vectors of {options.dimension:,} dimensions, one "
        "search after another; recall is the share of the exact best that is found:",
        grid(_HEAD, [row for images, one in found.items() for row in _rows(images, one)]),
        *(_request_lines(images, one["requests"]) for images, one in found.items()),
    ]
    same = all(one["same"] for one in found.values())
    compared = "the same bit for bit" if same else "**not the same**"
    parts.append(f"The lists of the packed matrix and of the database's scan are {compared}.")
    print("\n\n".join(parts))
    return 0 if same else 1


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _child(folder: Path, module: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", f"bench.{module}", *arguments],
        env={**os.environ, "VAR_DIR": str(folder / "texts"), "LOG_LEVEL": "ERROR"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _size(folder: Path, images: int, options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = _child(
        folder,
        "text_search_size",
        str(folder / str(images)),
        *("--images", str(images), "--dimension", str(options.dimension)),
        *("--searches", str(options.searches), "--depth", str(options.depth)),
    )
    return found


def _text_row(model: str, one: dict[str, Any]) -> list[str]:
    times = [ms(one[name]) for name in ("alone", "remembered", "at once", "batched")]
    return [f"`{model}`", *times, f"{one['equal']} of {one['texts']}"]


def _rows(images: int, found: dict[str, Any]) -> list[list[str]]:
    rows = []
    for way, name in WAYS.items():
        one = found[way]
        built, size, stored = "", "", ""
        if way == "matrix":
            built = f"{found['pack']:.1f} s"
        elif "build" in one:
            built, size = f"{one['build']:.1f} s", f"{one['bytes'] / 2**20:,.0f} MiB"
            stored = f"{found['stored'][way] / found['stored']['none']:.1f}"
        rows.append(
            [
                f"{images:,}",
                name,
                ms(one["median"]),
                ms(one["late"]),
                f"{one['median'] / found['matrix']['median']:.2f}",
                f"{one['recall']:.3f}",
                built,
                size,
                stored,
            ]
        )
    return rows


def _request_lines(images: int, seconds: dict[str, float] | None) -> str:
    if seconds is None:
        return f"{images:,} images: no whole request, since `{TEXT_MODEL}` has another dimension."
    return (
        f"{images:,} images: the page's whole request for 60 results through the packed matrix, "
        f"text and model `{TEXT_MODEL}` included, takes {ms(seconds['new'])} for a new text and "
        f"{ms(seconds['known'])} for a known one (medians)."
    )


if __name__ == "__main__":
    sys.exit(main())
