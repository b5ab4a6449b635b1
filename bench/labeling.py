"""How fast labeling is: `python -m bench.labeling`.

An application of its own: a list is labeled in both views in Chromium, then a crowd of simulated
annotators judges at once. Every time is given with that of a request that does nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from bench import harness
from bench.labeling_browser import GRID_SIZE, Session, chromium, label
from bench.labeling_crowd import Crowd, CrowdSite, Round, bare_requests, site

PACED_IMAGES: Final = 300
PACED_PAGES: Final = 13
AIM_NEXT: Final = 0.050
BATCH: Final = 25
AIM_ACKNOWLEDGED: Final = 0.100
HEAD: Final = ("What", "Median", "95 %", "× bare request", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a judgment was lost, doubled or refused, else 0. `candidates` are
    the images of a list, at least two pages of the grid; the crowd judges for `seconds`.
    """
    options = harness.parse(
        "labeling", __doc__, arguments, candidates=1000, annotators=50, seconds=60.0
    )
    harness.log("Starting an application of its own and drawing its images …")
    with (
        harness.temporary_folder("labeling") as folder,
        site(folder, depth=options.candidates, annotators=options.annotators) as where,
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
        crowd_rows, safe = _crowd_rows(where, options.seconds, usual)
    packages = ("Django", "gunicorn", "playwright")
    print(
        harness.section(
            "Labeling", options.command, packages, harness.table(HEAD, rows + crowd_rows)
        )
    )
    return 0 if safe else 1


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


def _crowd_rows(where: CrowdSite, seconds: float, bare: float) -> tuple[list[list[str]], bool]:
    who = f"{len(where.annotators)} annotators"
    harness.log(f"{who} …")
    rounds: dict[str, Round] = {}
    lost = doubled = 0
    # A query each: nobody comes to an image twice.
    turns: list[tuple[str, str, dict[str, Any]]] = [
        ("one a second each", "fox", {"seconds": seconds, "interval": 1.0}),
        ("at full speed", "hare", {"seconds": min(seconds, 20), "interval": 0.0}),
        (
            f"at full speed, batches of {BATCH}",
            "deer",
            {"seconds": min(seconds, 15), "interval": 0.0, "batch": BATCH},
        ),
    ]
    for name, animal, options in turns:
        crowd = Crowd(where, where.open_query(f"a {animal} at the edge of a forest"))
        done = rounds[f"{who} {name}: acknowledged"] = crowd.work(**options)
        found = crowd.lost_and_doubled(done)
        lost, doubled = lost + found[0], doubled + found[1]
    refused = [reason for done in rounds.values() for reason in done.refused]
    for reason in sorted(set(refused)):
        harness.log(f"Refused: {reason}")

    def rate(done: Round) -> str:
        return f"{done.acts.total() / done.elapsed:.0f} judgments a second"

    rows = [
        _times(name, done.waits, bare, f"{_within(done.waits, AIM_ACKNOWLEDGED)}; {rate(done)}")
        for name, done in rounds.items()
    ]
    counts = f"{lost} / {doubled} / {len(refused)}"
    total = sum(done.acts.total() for done in rounds.values())
    remark = f"of {total:,}; {sum(done.repeats for done in rounds.values())} sent again"
    rows.append([f"{who}: judgments lost / doubled / refused", counts, "", "", remark])
    return rows, lost == doubled == len(refused) == 0


if __name__ == "__main__":
    sys.exit(main())
