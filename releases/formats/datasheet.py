"""DATASHEET.md: the questions of "Datasheets for Datasets", answered from the data by the template
datasheet.md; and left_open.csv (left_open_val.csv of the validation split): the queries that were
completed with something left open, and why.

Questions: T. Gebru et al., "Datasheets for Datasets", Communications of the ACM 64 (12), 2021,
without those that only ask for other comments. What the data can't answer is left to the
maintainers. Where the labels of the test split are hidden, every figure of labels is of the
validation split; a reviewer's reason may say what a label is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from math import floor
from pathlib import Path
from typing import Any, Final

import jinja2
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.csv_rows import spreadsheet_text
from core.licenses import UNKNOWN, License, license_of
from labeling.judging.reliability import Reliability
from labeling.judging.sources import JudgmentSource
from releases.formats.base import Files
from releases.formats.writing import (
    SPLIT_NAMES,
    counted,
    percent,
    plain,
    share,
)
from releases.snapshot.certificates import certificates
from releases.snapshot.figures import (
    Spread,
    by_split,
    grouped,
    judging_seconds,
    pairs_per_query,
    release_reliability,
    seconds_by,
)
from releases.snapshot.release_certificate import (
    ReleaseCertificate,
    release_certificate,
    waiting_images,
)
from releases.snapshot.snapshot import Header, Snapshot, SnapshotQuery

DATASHEET_FILE: Final = "DATASHEET.md"


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """The judged pairs of a split."""

    name: str
    pairs: int
    relevant: int
    judged_per_query: Spread | None
    relevant_per_query: Spread | None
    without_relevant: int
    """Queries without any relevant image."""


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """The single judgments."""

    judgments: int
    annotators: int
    """People with a judgment that isn't a correction of a label in review."""
    correctors: int
    """People whose judgments all are."""
    unsure: int
    seconds: Spread | None
    """Of the judgments whose time is known."""
    timed: int
    people: list[tuple[int, int, float]]
    """Number of each person, their judgments whose time is known, and the seconds of these."""
    per_query: Spread | None
    """Of the seconds of each query."""
    timed_queries: int
    """How many queries that is over."""
    sources: list[tuple[str, int]]
    """Most judgments first."""
    votes: Counter[int]
    """Number of people who judged a pair -> pairs."""
    agreement: Reliability
    """Over the pairs that two people or more judged."""


@dataclass(frozen=True, slots=True)
class ListFacts:
    """The candidate lists and the fixed lists; counts of queries unless said otherwise."""

    filtered: int
    """With a species filter."""
    listed: int
    """With a candidate list."""
    cut: int
    """Whose list holds fewer images than were within the filter."""
    unfinished: int
    """Whose list isn't judged to its end."""
    fixed: int
    """With a fixed list."""
    rerankable: int
    """Whose fixed list is fit for re-ranking."""
    fixed_images: int
    """Images of the fixed lists."""
    fixed_unjudged: int
    """Images of the fixed lists without a label."""


@dataclass(frozen=True, slots=True)
class AuditFacts:
    """The queries' certificates."""

    queries: int
    """Audited ones."""
    whole: int
    """Of these, whose pool holds all images of the filter."""
    recall: Spread | None
    """Of the bounds in percent, over the queries with anything found."""
    recall_of_judged: Spread | None
    """The same without the queries in which images wait for a judgment."""
    stated: int
    """How many queries that is over."""
    unfinished: int
    """Queries in which images wait."""
    waiting: int
    """How many images these are."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The images that a pair or a fixed list names."""

    images: int
    species: int
    """Different ones."""
    with_species: int
    with_place: int
    with_date: int
    with_holder: int
    first_date: str
    last_date: str
    """Of the observations, ISO 8601 dates; empty where no image has one."""
    datasets: list[str]
    licenses: list[tuple[License, int]]
    """Each license with the number of its images, most first, then by name."""
    fields: list[str]
    """The names of the custom fields."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the template shows."""

    header: Header
    queries: list[SnapshotQuery]
    labeled: int
    """How many queries have labels here: all, or those of the validation split where the labels of
    the test split are hidden."""
    splits: dict[str, SplitFacts]
    """The splits with labels here."""
    labels: LabelFacts
    lists: ListFacts
    images: ImageFacts
    audits: AuditFacts | None
    """None where none of the labeled queries was audited."""
    release_audits: ReleaseCertificate | None
    """The release's own certificate, of the labeled queries; None where there is none."""
    waiting: int
    """How many of its drawn images wait for a judgment."""
    names = SPLIT_NAMES

    @property
    def queries_by_split(self) -> list[int]:
        """Number of queries of each split."""
        return list(by_split(self.queries).values())

    @property
    def scientific_terms(self) -> list[bool]:
        """Whether a query has scientific terms, for the queries where this is known."""
        terms = (query.scientific_terms for query in self.queries)
        return [term for term in terms if term is not None]

    @property
    def left_open(self) -> int:
        """Queries that were completed with something left open."""
        return sum(bool(query.left_open) for query in self.queries)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the datasheet, and the list of what was left open where anything was."""
    # A lazy iterator, since the facts are computed only where the file is to be written.
    files.text(DATASHEET_FILE, map(datasheet, [snapshot]))
    left_open = [
        (query.query_id, query.left_open, spreadsheet_text(query.completion_reason))
        for query in snapshot.queries.values()
        if query.left_open
    ]
    if left_open:
        columns = ("query_id", "left_open", "reason")
        files.csv(f"left_open{files.labels}.csv", columns, left_open)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"plain": plain, "thousands": "{:,}".format}
    environment.globals |= {
        "counted": counted,
        "duration": _duration,
        "paid": _paid,
        "grouped": grouped,
        "percent": percent,
        "percent_down": lambda value: f"{floor(10 * value) / 10:g}",
        "share": share,
        "sources": {str(source): source.words for source in JudgmentSource},
    }
    return environment.from_string(Path(__file__).with_suffix(".md").read_text(encoding="utf-8"))


def datasheet(snapshot: Snapshot) -> str:
    """The text of the datasheet: each paragraph of the template on one line."""
    blocks: list[list[str]] = [[]]
    for line in _template().render(f=facts_of(snapshot)).splitlines():
        block = blocks[-1]
        if not line.strip():
            blocks.append([])
        elif not block or line.startswith(("|", "- ")):
            block.append(line)
        else:
            block[-1] += " " + line.strip()
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _duration(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.1f} hours" if hours >= 1 else f"{seconds / 60:.1f} minutes"


def _paid(pay_per_hour: str, seconds: float) -> str:
    """What so much time costs: "31.00 USD"."""
    amount, currency = pay_per_hour.split(" ", 1)
    return f"{float(amount) * seconds / 3600:,.2f} {currency}"


def facts_of(snapshot: Snapshot) -> Facts:
    """Count everything; no figure is of a single image."""
    return Facts(
        header=snapshot.header,
        queries=list(snapshot.queries.values()),
        labeled=len(snapshot.labeled_queries),
        splits={split: split_facts(snapshot, split) for split in snapshot.labeled_splits},
        labels=label_facts(snapshot),
        lists=list_facts(snapshot),
        images=image_facts(snapshot),
        audits=audit_facts(snapshot),
        release_audits=release_certificate(snapshot),
        waiting=waiting_images(snapshot),
    )


def split_facts(snapshot: Snapshot, split: str) -> SplitFacts:
    """Counts of the judged pairs of a split."""
    counts = pairs_per_query(snapshot, list(snapshot.queries_of(split)))
    judged, relevant = counts["judged"], counts["relevant"]
    return SplitFacts(
        name=SPLIT_NAMES[split],
        pairs=int(judged.sum()),
        relevant=int(relevant.sum()),
        judged_per_query=Spread.of(judged),
        relevant_per_query=Spread.of(relevant),
        without_relevant=int((relevant == 0).sum()),
    )


def label_facts(snapshot: Snapshot) -> LabelFacts:
    """Counts of the single judgments."""
    sources: Counter[str] = Counter()
    relevances: Counter[str] = Counter()
    for batch in snapshot.batches("judgments", ("source", "relevance")):
        sources.update(_counts(batch.column(0)))
        relevances.update(_counts(batch.column(1)))
    timed = judging_seconds(snapshot)
    per_query = [seconds for *_, seconds in seconds_by(snapshot, "query_id")]
    votes = snapshot.table("pairs", ["votes"])["votes"]
    [(annotators, correctors)] = snapshot.sql(
        _PEOPLE, correction=str(JudgmentSource.CORRECTION)
    ).fetchall()
    return LabelFacts(
        judgments=relevances.total(),
        annotators=annotators,
        correctors=correctors,
        unsure=relevances["unsure"],
        seconds=Spread.of(timed),
        timed=len(timed),
        people=seconds_by(snapshot, "annotator"),
        per_query=Spread.of(np.array(per_query)),
        timed_queries=len(per_query),
        sources=sorted(sources.items(), key=lambda item: (-item[1], item[0])),
        votes=_counts(votes),
        agreement=release_reliability(snapshot),
    )


_PEOPLE: Final = """
SELECT count(*) FILTER (judges), count(*) FILTER (NOT judges)
  FROM (SELECT bool_or(source <> $correction) AS judges FROM judgments GROUP BY annotator)
"""


def list_facts(snapshot: Snapshot) -> ListFacts:
    """Counts of the candidate lists and the fixed lists."""
    queries = snapshot.labeled_queries.values()
    listed = [query for query in queries if query.list_size]
    judged = pairs_per_query(snapshot, [query.query_id for query in listed])["listed"]
    labels = snapshot.fixed_labels
    labeled_queries = snapshot.labeled_queries
    fixed = [image for image in snapshot.fixed() if image.query_id in labeled_queries]
    owners = {image.query_id for image in fixed}
    return ListFacts(
        filtered=sum(bool(query.species) for query in queries),
        listed=len(listed),
        cut=sum(query.list_size < query.list_total for query in listed),
        unfinished=sum(
            int(count) < query.list_size for count, query in zip(judged, listed, strict=True)
        ),
        fixed=len(owners),
        rerankable=len(owners & snapshot.rerankable_queries),
        fixed_images=len(fixed),
        fixed_unjudged=sum((image.query_id, image.image_id) not in labels for image in fixed),
    )


def audit_facts(snapshot: Snapshot) -> AuditFacts | None:
    """What the queries' certificates bound."""
    made = list(certificates(snapshot))
    if not made:
        return None
    bounds = [
        (100 * each.recall_at_least, each.waiting)
        for each in made
        if each.recall_at_least is not None
    ]
    of_judged = [bound for bound, waiting in bounds if not waiting]
    return AuditFacts(
        queries=len(made),
        whole=sum(certificate.whole for certificate in made),
        recall=Spread.of(np.array([bound for bound, _ in bounds])),
        recall_of_judged=Spread.of(np.array(of_judged)),
        stated=len(of_judged),
        unfinished=sum(certificate.waiting > 0 for certificate in made),
        waiting=sum(certificate.waiting for certificate in made),
    )


def image_facts(snapshot: Snapshot) -> ImageFacts:
    """Counts of the images."""
    species: Counter[str] = Counter()
    datasets: Counter[str] = Counter()
    days: Counter[str] = Counter()
    terms: Counter[tuple[str, str]] = Counter()
    with_place = with_holder = 0
    columns = ["scientific_name", "dataset", "observed_at", "license", "license_url"]
    for batch in snapshot.batches("images", [*columns, "rights_holder", "latitude", "longitude"]):
        species.update(_counts(batch["scientific_name"]))
        datasets.update(_counts(batch["dataset"]))
        days.update(_counts(pc.utf8_slice_codeunits(batch["observed_at"], 0, 10)))
        terms.update(
            zip(batch["license"].to_pylist(), batch["license_url"].to_pylist(), strict=True)
        )
        with_place += _count(pc.and_(batch["latitude"].is_valid(), batch["longitude"].is_valid()))
        with_holder += _count(pc.not_equal(batch["rights_holder"], ""))
    licenses: Counter[License] = Counter()
    for (name, url), count in terms.items():
        license = license_of(name, url)
        if license.name == UNKNOWN.name:
            # A text that isn't known is a license of its own.
            license = replace(license, name=" ".join(f"{name} {url}".split()))
        licenses[license] += count
    dated = sorted(days.keys() - {""})
    return ImageFacts(
        images=species.total(),
        species=len(species.keys() - {""}),
        with_species=species.total() - species[""],
        with_place=with_place,
        with_date=days.total() - days[""],
        with_holder=with_holder,
        first_date=dated[0] if dated else "",
        last_date=dated[-1] if dated else "",
        datasets=sorted(datasets.keys() - {""}),
        licenses=sorted(licenses.items(), key=lambda item: (-item[1], item[0].name, item[0].url)),
        fields=_custom_fields(snapshot),
    )


def _custom_fields(snapshot: Snapshot) -> list[str]:
    """The names of the fields that the images have values in."""
    if not snapshot.has_table("custom_fields"):
        return []
    names = snapshot.sql("SELECT DISTINCT field FROM custom_fields ORDER BY field").fetchall()
    return [name for (name,) in names]


def _counts(values: pa.Array | pa.ChunkedArray) -> Counter[Any]:
    pairs = pc.value_counts(values).to_pylist()
    return Counter({pair["values"]: pair["counts"] for pair in pairs})


def _count(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)
