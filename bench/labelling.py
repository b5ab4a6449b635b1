"""How fast labelling is: `python -m bench.labelling`.

Starts an application of its own in a temporary folder, labels a list in both views in Chromium,
lets a crowd of simulated annotators judge at once, and prints a Markdown table. Every time stands
beside that of a request that does nothing, since machines differ more than versions do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from bench.browsing import GRID_SIZE, Session, chromium, label_grid, label_single
from bench.crowd import Crowd, Round
from bench.figures import Row, machine, percentile, share_under, table, timing
from bench.site import BenchSite

PACE = 3.0
PACED_IMAGES = 300
PAGE_SECONDS = 5.0
PACED_PAGES = 13
AIM_NEXT = 0.050
AIM_ACKNOWLEDGED = 0.100
BARE_REQUESTS = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a judgment was lost, doubled or refused, else 0."""
    parser = argparse.ArgumentParser(prog="python -m bench.labelling", description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000, help="images in the list")
    parser.add_argument("--annotators", type=int, default=50, help="people who judge at once")
    parser.add_argument("--seconds", type=float, default=60, help="how long they judge")
    options = parser.parse_args(arguments)
    if options.candidates < 2 * GRID_SIZE:
        parser.error(f"--candidates must be at least {2 * GRID_SIZE}, two pages of the grid.")
    if options.annotators < 1 or options.seconds <= 0:
        parser.error("--annotators and --seconds must be positive.")
    with tempfile.TemporaryDirectory(prefix="bench-labelling-") as folder:
        _tell("Starting an application of its own and drawing its scenes …")
        with BenchSite(
            Path(folder), depth=options.candidates, annotators=options.annotators
        ) as site:
            rows, safe = _measure(site, options)
    print(f"# Labelling\n\n{machine()}\n\n{table(rows)}")
    return 0 if safe else 1


def _measure(site: BenchSite, options: argparse.Namespace) -> tuple[list[Row], bool]:
    bare = _bare_requests(site, "/static/img/favicon.svg")
    trivial = _bare_requests(site, "/api/preferences/labelling/")
    usual = percentile(bare, 0.5)
    rows = [
        timing("Bare request: a static file", bare, bare=usual, remark="the reference"),
        timing("Bare request: logged in, one row", trivial, bare=usual),
    ]
    rows += _browser_rows(site, options.candidates, usual)
    crowd_rows, safe = _crowd_rows(site, options.annotators, options.seconds, usual)
    return rows + crowd_rows, safe


def _browser_rows(site: BenchSite, candidates: int, bare: float) -> list[Row]:
    user = site.annotators[0]
    with chromium() as browser:
        _tell("Single view, as fast as it goes …")
        query = site.open_query("a bird on a branch at night")
        fast = label_single(site, browser, user, query, images=candidates, pause=0)
        _tell("Single view, three images a second …")
        query = site.open_query("a beetle in a meadow")
        paced_images = min(candidates, PACED_IMAGES)
        paced = label_single(site, browser, user, query, images=paced_images, pause=1 / PACE)
        _tell("Grid, as fast as it goes …")
        query = site.open_query("a snail on a leaf")
        grid = label_grid(site, browser, user, query, images=candidates, pause=0)
        _tell(f"Grid, a page in {PAGE_SECONDS:.0f} seconds …")
        query = site.open_query("a spider in its web")
        paced_images = min(candidates, PACED_PAGES * GRID_SIZE)
        turned = label_grid(site, browser, user, query, images=paced_images, pause=PAGE_SECONDS)
    return [
        _step_row("Single: key to next image painted, as fast as keys come", fast, bare),
        _step_row(f"Single: key to next image painted, {PACE:.0f} a second", paced, bare),
        _page_row(f"Grid: page of {GRID_SIZE} to next page painted, without a pause", grid, bare),
        _page_row(
            f"Grid: page of {GRID_SIZE} to next page painted, one in {PAGE_SECONDS:.0f} s",
            turned,
            bare,
        ),
        _rate_row("Single: judgments a second in the database", fast),
        _rate_row("Grid: judgments a second in the database", grid),
        _traffic_row("Single: a hundred images", fast),
        _traffic_row("Grid: a hundred images", grid),
    ]


def _crowd_rows(
    site: BenchSite, annotators: int, seconds: float, bare: float
) -> tuple[list[Row], bool]:
    query = site.open_query("a fox at the edge of a forest")
    crowd = Crowd(site, query)
    _tell(f"{annotators} annotators, one judgment a second each …")
    steady = crowd.work(seconds=seconds, interval=1.0)
    _tell(f"{annotators} annotators at full speed …")
    full = crowd.work(seconds=min(seconds, 20.0), interval=0.0)
    _tell("Comparing with the database …")
    kept = crowd.compare([steady, full])
    refused = len(steady.refused) + len(full.refused)
    sent = len(steady.acts) + len(full.acts)
    rows = [
        _crowd_row(f"{annotators} annotators, one a second each: acknowledged", steady, bare),
        _crowd_row(f"{annotators} annotators at full speed: acknowledged", full, bare),
        Row(
            f"{annotators} annotators: judgments lost / doubled / refused",
            f"{kept.lost} / {kept.doubled} / {refused}",
            remark=f"of {sent:,}; {steady.repeats + full.repeats} sent again",
        ),
    ]
    for reason in sorted({*steady.refused, *full.refused}):
        _tell(f"Refused: {reason}")
    return rows, kept.lost == kept.doubled == refused == 0


def _step_row(name: str, session: Session, bare: float) -> Row:
    within = share_under(session.waits, AIM_NEXT)
    remark = f"{within:.1%} of {len(session.waits)} within {AIM_NEXT * 1000:.0f} ms"
    return timing(name, session.waits, bare=bare, remark=remark)


def _page_row(name: str, session: Session, bare: float) -> Row:
    remark = f"{len(session.waits)} pages, all thumbnails decoded"
    return timing(name, session.waits, bare=bare, remark=remark)


def _rate_row(name: str, session: Session) -> Row:
    remark = f"{session.images} judgments in {session.elapsed:.1f} s"
    return Row(name, f"{session.images / session.elapsed:.1f}", remark=remark)


def _traffic_row(name: str, session: Session) -> Row:
    hundreds = session.images / 100
    requests = session.traffic.requests / hundreds
    sent = session.traffic.bytes / hundreds / 1e6
    return Row(
        f"{name}: requests / bytes",
        f"{requests:.0f} / {sent:.2f} MB",
        remark="the opening of the page included",
    )


def _crowd_row(name: str, done: Round, bare: float) -> Row:
    within = share_under(done.waits, AIM_ACKNOWLEDGED)
    remark = (
        f"{within:.1%} within {AIM_ACKNOWLEDGED * 1000:.0f} ms;"
        f" {len(done.acts) / done.elapsed:.0f} judgments a second"
    )
    return timing(name, done.waits, bare=bare, remark=remark)


def _bare_requests(site: BenchSite, path: str) -> list[float]:
    headers = {"Authorization": f"Token {site.tokens[site.annotators[0]]}"}
    times = []
    for _request in range(BARE_REQUESTS):
        began = time.perf_counter()
        request = urllib.request.Request(site.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
        times.append(time.perf_counter() - began)
    return times


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
