"""How fast the exact order is found: `python -m bench.ranking`.

For each size a database of its own with clustered vectors of unit length in half precision. The
first images for a query's vector come from the application through its packed matrix, from
pgvector's scan (the same function, without the matrix), from FAISS' flat index in half precision,
and from single precision in NumPy; beside them a bare half-precision product of the same matrix and
the vector, which sorts nothing. Each is a process of its own and has its turn in each round, so
that a slow moment of the machine meets all of them. The lists are compared: the application's two
must be the same bit for bit, else the exit status is 1.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np

from bench.own_state import tell
from bench.ranking_lists import agreement, identical
from bench.ranking_methods import FILTERS
from bench.ranking_parts import SHARE, Needs, Part, gigabytes, memory_available, own_folder
from bench.ranking_rows import query_vectors
from bench.ranking_section import KINDS, NAMES, Measured, section

SIZES: Final = (200_000, 1_000_000, 5_000_000)
WHOLE: Final = {"do": "rank"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the matrix' lists are not the database's."""
    parser = argparse.ArgumentParser(prog="python -m bench.ranking", description=__doc__)
    parser.add_argument(
        "--sizes",
        type=_sizes,
        default=SIZES,
        help="in the order in which they are measured; default: 200000,1000000,5000000",
    )
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=5000, help="images a list (default: 5000)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--vectors", type=int, default=250, help="queries at once (default: 250)")
    parser.add_argument("--folder", type=Path, help="where the databases lie while they are needed")
    options = parser.parse_args(arguments)
    given = shlex.join(sys.argv[1:] if arguments is None else arguments)
    found, left_out = [], []
    with tempfile.TemporaryDirectory(prefix="bench-ranking-", dir=options.folder) as folder:
        for images in options.sizes:
            problem = Needs(images, options.dimension).lacks_disk(Path(folder))
            if problem:
                left_out.append(f"{images:,} images are left out: {problem}.")
                continue
            with own_folder(Path(folder) / str(images)) as state:
                found.append(_measure(state, images, options))
    found.sort(key=lambda one: one.images)
    print(section(found, left_out, command=f"python -m bench.ranking {given}".strip()))
    return 0 if found and all(one.same for one in found) else 1


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _measure(folder: Path, images: int, options: argparse.Namespace) -> Measured:
    found = Measured(images, min(options.depth, images), options.vectors)
    needs = Needs(images, options.dimension)
    count = max(options.rounds + 1, options.vectors)
    np.save(folder / "queries.npy", query_vectors(count, options.dimension))

    def part(method: str) -> Part:
        return Part(method, folder, images=images, dimension=options.dimension, depth=options.depth)

    with part("database") as database, part("matrix") as matrix:
        tell(f"{images:,} images: filling a database …")
        database.ask("make")
        tell(f"{images:,} images: packing the matrix …")
        found.once["bare copy"] = database.seconds("copied")
        found.once["pack"] = matrix.seconds("pack")
        found.memory["before"] = matrix.ask("memory")["bytes"]
        parts = {"database": database, "matrix": matrix}
        for group in _groups(found, needs):
            tell(f"{images:,} images: ranking by {', '.join(group)} …")
            with ExitStack() as others:
                for method in group:
                    if method not in parts:
                        parts[method] = others.enter_context(part(method))
                _in_turn(found, {method: parts.pop(method) for method in group}, options.rounds)
        found.memory["after single"] = matrix.ask("memory")["bytes"]
        tell(f"{images:,} images: filters …")
        for name in KINDS:
            request = {"do": "within", "kind": name} if name in FILTERS else {"do": name}
            _in_turn(found, {"database": database, "matrix": matrix}, options.rounds, name, request)
        tell(f"{images:,} images: {options.vectors} queries at once …")
        found.once["many"] = matrix.seconds("many", count=options.vectors)
        found.memory["after many"] = matrix.ask("memory")["bytes"]
        found.once["one by one"] = matrix.seconds("one_by_one", count=options.vectors)
        with part("bare") as bare:
            found.once["bare many"] = bare.seconds("many", count=options.vectors)
    lists = folder / "lists"
    at_once = identical(lists, "matrix-whole-", "matrix-many-")
    found.same = at_once and identical(lists, "database-", "matrix-")
    found.faiss = agreement(lists, "matrix-whole-", "faiss-whole-")
    return found


def _groups(found: Measured, needs: Needs) -> list[list[str]]:
    """The methods that are measured in turn with each other: all, or where the memory doesn't
    hold them together a group at a time, which `found.notes` says.
    """
    memory = SHARE * memory_available()
    held = {
        ("database",): 1.4 * needs.matrix,
        ("matrix", "bare"): needs.matrix,
        ("faiss",): needs.matrix,
        ("numpy",): 2 * needs.matrix,
    }
    if sum(held.values()) <= memory:
        return [[method for group in held for method in group]]
    fit = [list(group) for group, size in held.items() if size <= memory]
    out = [method for group, size in held.items() if size > memory for method in group]
    told = f"{found.images:,} images: the memory ({gigabytes(memory)} for this) doesn't hold all "
    told += "methods' vectors, so they were measured one after the other: "
    told += ", then ".join(" with ".join(NAMES[method] for method in group) for group in fit)
    if out:
        told += f". Without {', '.join(NAMES[method] for method in out)}"
    found.notes.append(f"{told}.")
    return fit


def _in_turn(
    found: Measured,
    parts: Mapping[str, Part],
    rounds: int,
    name: str = "",
    request: Mapping[str, str] = WHOLE,
) -> None:
    """Each method once in each round, with another query in each; before them all a round that
    doesn't count. Times go to "method name".
    """
    for query in range(rounds + 1):
        for method, part in parts.items():
            seconds = part.ask(**request, query=query)["seconds"]
            if query:
                found.rounds.setdefault(f"{method} {name}".strip(), []).append(seconds)


if __name__ == "__main__":
    sys.exit(main())
