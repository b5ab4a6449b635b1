"""All benchmarks, one after the other, into bench/RESULTS.md: `python -m bench [SECTION …]`.

Each runs in its own process and prints a section; sections that aren't run stay in the file
unchanged, as does the section of a benchmark that fails. The others run nevertheless.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
#: Each benchmark with the smallest sizes at which it still measures something.
SECTIONS: Final[Mapping[str, str]] = {
    "loading": "--images 1500 --species 70 --rounds 1",
    "vectors": "--images 1500 --dimension 64 --repeats 1",
    "ranking": "--sizes 2000 --dimension 64 --depth 100 --vectors 6 --rounds 1",
    "sharding": "--sizes 2000 --dimension 64 --depth 100 --rounds 1 --shards 2",
    "text_search": "--images 1500 --searches 6 --depth 20 --models demo --texts 8",
    "learning": "--sizes 2000 --dimension 64 --rounds 1",
    "serving": "--images 100 --texts 3",
    "embedding": "--models demo --images 24 --turns 1",
    "first_release": "--photographs drawn",
    "labeling": "--candidates 80",
    "load": "--annotators 4 --queries 2 --candidates 80 --seconds 8 --pace 0.3",
    "soak": "--annotators 3 --queries 2 --candidates 60 --judgments 360 --pace 1 --every 1",
    "pages": "--images 3000 --small 2000 --species 150 --judgments 2000 --rounds 1",
    "metrics": "--queries 3 --runs 2 --depth 40 --repeats 1",
    "releases": "--images 200 --species 20 --judgments 1000",
    "curation": "--sizes 3000",
    "context": "--images 3000 --species 20 --observers 60",
    "certified": "--releases 2 --queries 2 --timed 3 --missing 20 --rounds 1",
    "trust": "--labelers 4 --releases 4 --queries 2",
}
HEADING: Final = """# What is measured

By `python -m bench`; each section says when and on which machine, and how to repeat it alone.
"""


def main() -> int:
    """Run the requested benchmarks; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument(
        "--small", type=Path, metavar="FILE", help="run each at its smallest size, into a file"
    )
    parser.add_argument("--options", default="", help="of the sections, in one text")
    options = parser.parse_args()
    if unknown := sorted(set(options.sections) - set(SECTIONS)):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    failed = []
    for name in options.sections or SECTIONS:
        sizes = SECTIONS[name] if options.small else options.options
        command = [sys.executable, "-m", f"bench.{name}", *shlex.split(sizes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, file=sys.stderr if done.returncode else sys.stdout)
        if done.returncode:
            failed.append(name)
        else:
            write_section(options.small or RESULTS, name, done.stdout.strip())
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def write_section(path: Path, name: str, text: str) -> None:
    """Replace or add a section of a file, in the order of SECTIONS."""
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    parts = re.split(r"^<!-- section: (\w+) -->$", before, flags=re.M)[1:]
    sections = dict(zip(parts[::2], map(str.strip, parts[1::2]), strict=True)) | {name: text}
    ordered = [
        f"<!-- section: {section} -->\n\n{sections[section]}\n"
        for section in SECTIONS
        if section in sections
    ]
    path.write_text("\n".join([HEADING, *ordered]), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
