"""All benchmarks of a large corpus, one after the other: `make bench`, or `python -m bench`.

Each is a module of its own, run as a process of its own, and prints one section. The sections go
into bench/RESULTS.md; those that aren't run this time stay there as they were. A benchmark that
fails doesn't keep the others from running: its section says so, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.own_state import tell

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
#: Each section's module, with what makes it small enough for a test.
SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "loading": ("--images", "2000", "--species", "50", "--rounds", "1"),
    "vectors": ("--images", "2000", "--dimension", "64", "--repeats", "1"),
    "ranking": ("--sizes", "2000", "--dimension", "64", "--depth", "100", "--vectors", "6"),
    "text_search": (
        *("--images", "2000", "--dimension", "32", "--searches", "3"),
        *("--models", "demo", "--texts", "4"),
    ),
    "embedding": ("--models", "demo", "--images", "32", "--turns", "1"),
    "pages": (
        *("--images", "4000", "--small", "2000", "--species", "50"),
        *("--judgments", "500", "--rounds", "1"),
    ),
}
HEADING: Final = """# What it takes with a large corpus

Measured by `make bench`; each section says when and on which machine, and how to repeat it alone.
`make bench SECTIONS="ranking pages"` measures some of them and leaves the others as they are.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks that were asked for; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"default: {' '.join(SECTIONS)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, only to see that all of it works"
    )
    parser.add_argument(
        "--out", type=Path, help=f"default: {RESULTS.name} beside this module, but for --quick"
    )
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.sections) - set(SECTIONS)):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if options.quick and options.out is None:
        parser.error("--quick needs --out: its figures say nothing")
    return _run(options.sections or list(SECTIONS), options.out or RESULTS, quick=options.quick)


def _run(names: Sequence[str], out: Path, *, quick: bool) -> int:
    failed = []
    for name in names:
        tell(f"— {name} —")
        section, status = _section(name, SECTIONS[name] if quick else ())
        if status:
            failed.append(name)
        # Whatever cuts a later one short, this one is kept.
        kept = read_results(out) | {name: section}
        partial = out.with_name(f".{out.name}.partial")
        partial.write_text(results_text(kept), encoding="utf-8")
        partial.replace(out)
    tell(f"{len(names) - len(failed)} of {len(names)} sections are in {out.name}.")
    if failed:
        tell(f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


def _section(name: str, arguments: Sequence[str]) -> tuple[str, int]:
    """What a benchmark printed, and its exit status; where it failed, with a line that says so."""
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ, check=False)
    printed = done.stdout.strip()
    if done.returncode == 0 and printed.startswith("## "):
        return printed, 0
    status = done.returncode or 1
    why = f"**It failed** on {datetime.now(UTC):%Y-%m-%d} with exit status {done.returncode}."
    if not printed.startswith("## "):
        printed = f"## {name.replace('_', ' ').capitalize()}"
    return f"{printed}\n\n{why}", status


def read_results(path: Path) -> dict[str, str]:
    """The sections of a file that `results_text` made, by name; none where there is no file."""
    if not path.is_file():
        return {}
    parts = re.split(r"^<!-- section: (\w+) -->$", path.read_text(encoding="utf-8"), flags=re.M)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def results_text(sections: Mapping[str, str]) -> str:
    """The file of all sections, in the order in which they are run."""
    ordered = [name for name in SECTIONS if name in sections]
    return "\n".join(
        [HEADING, *(f"<!-- section: {name} -->\n\n{sections[name]}\n" for name in ordered)]
    )


if __name__ == "__main__":
    sys.exit(main())
