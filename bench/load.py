"""Fifty, a hundred and two hundred annotators at once, each in a browser: `python -m bench.load`.

A new application, with a PgBouncer of `--pool` connections before its database if there are any,
and Locust's users (`load_users`) who label at a person's pace, by default INQUIRE's 3.3 s an image
(section H): a fourth of them by pages of the grid, a tenth what audits draw. For comparison, in the
same run and by as many users at the same pace, the time that Label Studio and doccano take to save
a label; `--label-studio` and `--doccano` name the programs. `--pace` is the mean seconds for an
image, `--seconds` how long all of a crowd label, `--coming` how many arrive in a second.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from bench import harness, load_others
from bench.crowd import (
    ACKNOWLEDGED,
    HEAD,
    SAVE,
    Load,
    annotators,
    bare_requests,
    site,
    times_row,
    usage,
)
from tests.processes import wait_for
from tests.site import Site

GRID_EVERY: Final = 4
AUDITS_EVERY: Final = 10
OTHERS_SECONDS: Final = 60.0
AIM: Final = 0.250
CROWD_HEAD: Final = (
    "Annotators | Judgments a second | Median | 99 % | A save: median | 99 %"
    f" | within {AIM * 1000:.0f} ms | Cores: web server | PostgreSQL | the annotators"
)
USAGE_HEAD: Final = "Part | Cores used | Own memory when all had come | at the end"


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether no judgment was lost, doubled or refused, and the times of the requests."""
    most = max(options.annotators)
    crowds, rights = [], []
    with harness.temporary_folder() as folder:
        harness.log("Starting an application of its own and drawing its images …")
        sizes = {"depth": options.candidates, "annotators": most, "pool": options.pool}
        with site(folder, **sizes) as where:
            bare = median(bare_requests(where))
            for number in options.annotators:
                right, crowd, rows, text = _ours(where, folder, number, options, bare)
                rights.append(right)
                crowds.append(crowd)
        for name, program, serve in (
            ("Label Studio", options.label_studio, load_others.label_studio),
            ("doccano", options.doccano, load_others.doccano),
        ):
            if not program:
                rows.append([f"{name}: save", "not measured", *[None] * 6])
                continue
            title = f"{name} {load_others.version(Path(program))}: save"
            harness.log(f"{title} …")
            own_folder = folder / name.split()[0]
            with serve(Path(program), own_folder, most) as plan:
                people = [{"name": str(number), "queries": []} for number in range(most)]
                seconds = min(OTHERS_SECONDS, options.seconds)
                common = {"people": people, "pace": options.pace, "seconds": seconds}
                load = Load(folder / f"{own_folder.name}-load", **plan, **common, a_second=20)
                load.wait()
            saves = load.requests()["Save"]
            saves = saves[saves[:, 0] >= load.outcome["began"]]
            rows.append(times_row(title, saves, seconds, bare))
    return all(rights), [
        f"Annotators of {options.queries} queries, each {options.pace:g} s an image in the "
        "mean; on the same machine as what they do it with. From the key to the answer that a "
        "judgment is stored, with the page's rests, and a request that saves what has waited, "
        f"while all label for {options.seconds:g} s:",
        harness.table(CROWD_HEAD, crowds),
        f"What the {options.annotators[-1]} asked for. The bare request of a static file "
        f"before anybody came: {harness.ms(bare)}.",
        harness.table(HEAD, rows),
        text,
    ]


def _ours(
    where: Site, folder: Path, number: int, options: Any, bare: float
) -> tuple[bool, list[Any], list[list[Any]], str]:
    """Whether each of a crowd's judgments is stored once, its row under CROWD_HEAD, its rows under
    HEAD, and the resources that it used.
    """
    queries = [
        where.open_query(f"{number} foxes at place {n} of a forest") for n in range(options.queries)
    ]
    people = [
        {
            "name": name,
            "queries": [queries[turn % len(queries)]],
            "grid": turn % GRID_EVERY == 1,
            "audits": turn % AUDITS_EVERY == 2,
        }
        for turn, name in enumerate(annotators(where)[:number])
    ]
    harness.log(f"{number} annotators come and label …")
    plan = {"url": where.url, "people": people, "pace": options.pace, "seconds": options.seconds}
    came = time.time()
    load = Load(folder / f"{number}", **plan, a_second=options.coming)
    wait_for(load.all_there, seconds=3600, what="all to be there", pause=1)
    before, marked = usage(where.served), time.time()
    load.wait()
    after, elapsed = usage(where.served), time.time() - marked
    began, ended = load.outcome["began"], load.outcome["ended"]
    requests = load.requests()
    labeling = {
        name: rows[(rows[:, 0] >= began) & (rows[:, 0] < ended)] for name, rows in requests.items()
    }
    opening = [name for name in requests if name.startswith(("Log in", "Static file", "Page"))]
    rows = [
        times_row(name, some, ended - began, bare)
        for name, some in labeling.items()
        if len(some) and name not in opening
    ]
    for name in opening:
        rows.append(times_row(f"{name}, while they come", requests[name], began - came, bare))
    cores = {name: (after[name][0] - before[name][0]) / elapsed for name in before}
    cores["the annotators"] = load.outcome["seconds"] / (time.time() - came)
    used: list[list[Any]] = [
        [name, cores[name], harness.megabytes(before[name][1]), harness.megabytes(after[name][1])]
        for name in before
    ]
    used.append(["the annotators", cores["the annotators"], None, None])
    late = [
        harness.ms(float(percentile))
        for name in (ACKNOWLEDGED, SAVE)
        for percentile in np.percentile(labeling[name][:, 1], (50, 99))
    ]
    quick = f"{np.mean(labeling[SAVE][:, 1] < AIM):.1%}"
    a_second = f"{len(labeling[ACKNOWLEDGED]) / (ended - began):.1f}"
    ours = [cores[part] for part in ("web server", "PostgreSQL", "the annotators")]
    lost, doubled, refused = load.lost_doubled_refused(where.served, queries)
    text = (
        f"Of {len(requests[ACKNOWLEDGED]):,} judgments that were acknowledged {lost} are lost, "
        f"{doubled} doubled and {refused} refused.\n\n{harness.table(USAGE_HEAD, used)}"
    )
    return not (lost or doubled or refused), [number, a_second, *late, quick, *ours], rows, text


if __name__ == "__main__":
    packages = ("Django", "gunicorn", "locust")
    sizes = {"annotators": (50, 100, 200), "queries": 20, "candidates": 400}
    times = {"seconds": 180.0, "pace": 3.3, "coming": 0.7}
    others = {"label_studio": "", "doccano": ""}
    harness.run(main, "Load", packages, **sizes, **times, pool=0, **others)
