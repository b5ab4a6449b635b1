"""How fast labeling is: `python -m bench.labeling`.

An application of its own: a list is labeled in both views in Chromium. Every time is given with
that of a request that does nothing. Many annotators at once are in `bench.load`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median
from typing import Final

import numpy as np

from bench import harness
from bench.labeling_browser import GRID_SIZE, Session, chromium, label
from bench.labeling_crowd import CrowdSite, bare_requests, site

PACED_IMAGES: Final = 300
PACED_PAGES: Final = 13
AIM_NEXT: Final = 0.050
HEAD: Final = ("What", "Median", "95 %", "× bare request", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark. `candidates` are the images of a list, at least two pages of the grid."""
    options = harness.parse("labeling", __doc__, arguments, candidates=1000)
    harness.log("Starting an application of its own and drawing its images …")
    with (
        harness.temporary_folder("labeling") as folder,
        site(folder, depth=options.candidates, annotators=1) as where,
    ):
        bare = bare_requests(where, "/static/img/favicon.svg")
        usual = median(bare)
        rows = [
            _times("Bare request: a static file", bare, usual, "the reference"),
            _times(
                "Bare request: logged in, one row",
                bare_requests(where, "/api/preferences/labeling/"),
                usual,
                "",
            ),
            *_browser_rows(where, usual),
        ]
    packages = ("Django", "gunicorn", "playwright")
    print(harness.section("Labeling", options.command, packages, harness.table(HEAD, rows)))
    return 0


def _times(name: str, waits: Sequence[float], bare: float, remark: str) -> list[str]:
    late = float(np.percentile(waits, 95))
    usual = median(waits)
    return [name, harness.ms(usual), harness.ms(late), f"{usual / bare:.1f}", remark]


def _within(waits: Sequence[float], limit: float) -> str:
    return f"{np.mean(np.array(waits) < limit):.1%} within {limit * 1000:.0f} ms"


def _browser_rows(where: CrowdSite, bare: float) -> list[list[str]]:
    def work(text: str, view: str, most: int, pause: float) -> Session:
        harness.log(f"Labeling {text} …")
        images, query = min(where.depth, most), where.open_query(text)
        return label(where, browser, query, view, images=images, pause=pause)

    with chromium() as browser:
        fast = work("a bird on a branch at night", "single", where.depth, 0)
        paced = work("a beetle in a meadow", "single", PACED_IMAGES, 1 / 3)
        grid = work("a snail on a leaf", "grid", where.depth, 0)
        turned = work("a spider in its web", "grid", PACED_PAGES * GRID_SIZE, 5)
    key, page = "Single: key to next image painted", f"Grid: page of {GRID_SIZE} to next painted"
    rows = [
        _times(f"{key}, as fast as keys come", fast.waits, bare, _within(fast.waits, AIM_NEXT)),
        _times(f"{key}, 3 a second", paced.waits, bare, _within(paced.waits, AIM_NEXT)),
        _times(f"{page}, without a pause", grid.waits, bare, f"{len(grid.waits)} pages"),
        _times(f"{page}, one in 5 s", turned.waits, bare, f"{len(turned.waits)} pages"),
    ]
    for name, one in (("Single", fast), ("Grid", grid)):
        rate = f"{one.images / one.elapsed:.1f}"
        remark = f"{one.images} judgments in {one.elapsed:.1f} s"
        rows.append([f"{name}: judgments a second in the database", rate, "", "", remark])
    for name, one in (("Single", fast), ("Grid", grid)):
        hundreds = one.images / 100
        traffic = f"{one.requests / hundreds:.0f} / {one.bytes / hundreds / 1e6:.2f} MB"
        remark = "the opening of the page included"
        rows.append([f"{name}: a hundred images: requests / bytes", traffic, "", "", remark])
    return rows


if __name__ == "__main__":
    sys.exit(main())
