"""What the datasheet says in figures, counted from a snapshot. No figure tells of one image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmark.releases.formats.writing import ACCESS, batches, pair_columns, rows
from benchmark.releases.snapshot.licenses import UNKNOWN, Licence, licence_of
from benchmark.releases.snapshot.snapshot import Header, Snapshot, SnapshotQuery
from benchmark.scoring.rerank_rule import fit
from labeling.judging.consensus import Agreement, agreement


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number is spread over some things, of which there is at least one."""

    least: float
    median: float
    mean: float
    most: float
    total: float

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Spread | None:
        """None of no values."""
        if not len(values):
            return None
        return cls(
            least=float(values.min()),
            median=float(np.median(values)),
            mean=float(values.mean()),
            most=float(values.max()),
            total=float(values.sum()),
        )


@dataclass(frozen=True, slots=True)
class SplitFacts:
    """The judged pairs of a split."""

    queries: int
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
    unsure: int
    seconds: Spread | None
    """Of the judgments whose time is known."""
    timed: int
    sources: Counter[str]
    votes: Counter[int]
    """People who judged a pair -> pairs."""
    agreement: Agreement
    """Over each two judgments of one pair by two people, the one of the lower number first."""


@dataclass(frozen=True, slots=True)
class ListFacts:
    """The candidate lists and the fixed lists."""

    filtered: int
    """Queries with a species filter."""
    listed: int
    """Queries with a candidate list."""
    cut: int
    """Lists that hold fewer images than were within the filter."""
    unfinished: int
    """Lists of which not every image is judged."""
    fixed: int
    """Fixed lists."""
    fit: int
    """Of them, those fit for re-ranking."""
    fixed_images: int
    fixed_unjudged: int


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
    datasets: Counter[str]
    licences: list[tuple[Licence, int]]
    """By how many images have them, most first, then by name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the datasheet is written from."""

    header: Header
    queries: list[SnapshotQuery]
    labeled: int
    """Queries that labels and lists are counted of: all, or those of the validation split where the
    labels of the test split are hidden."""
    splits: dict[str, SplitFacts]
    """Of the splits that labels are counted of."""
    labels: LabelFacts
    lists: ListFacts
    images: ImageFacts

    @property
    def unknown_negatives(self) -> bool:
        """Whether the release doesn't tell which images were judged and not relevant. Sheets of
        older releases come out as they were written, which didn't say so."""
        return self.header.negatives_known is False

    @property
    def pairs(self) -> int:
        return sum(split.pairs for split in self.splits.values())

    @property
    def relevant(self) -> int:
        return sum(split.relevant for split in self.splits.values())


def facts_of(snapshot: Snapshot) -> Facts:
    """Count everything, reading each table as often as it has columns to give."""
    labeled = snapshot.open
    return Facts(
        header=snapshot.header,
        queries=list(labeled.queries.values()),
        labeled=len(labeled.labeled_queries),
        splits={
            split: split_facts(labeled, split)
            for split in ACCESS
            if labeled is snapshot or split == "val"
        },
        labels=label_facts(labeled),
        lists=list_facts(labeled),
        images=image_facts(snapshot),
    )


def split_facts(snapshot: Snapshot, split: str) -> SplitFacts:
    """Counts of the judged pairs of a split."""
    pairs = pair_columns(snapshot).of_split(snapshot, split)
    ids = list(snapshot.queries_of(split))
    judged = _per_query(ids, pairs.query_ids)
    relevant = _per_query(ids, pairs.query_ids[pairs.relevant])
    return SplitFacts(
        queries=len(ids),
        pairs=len(pairs.query_ids),
        relevant=int(pairs.relevant.sum()),
        judged_per_query=Spread.of(judged),
        relevant_per_query=Spread.of(relevant),
        without_relevant=int((relevant == 0).sum()),
    )


def _per_query(ids: Sequence[int], query_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often each of the ascending `ids` stands among the ascending `query_ids`."""
    wanted = np.array(ids, dtype=np.int64)
    right = np.searchsorted(query_ids, wanted, side="right")
    return np.asarray(right - np.searchsorted(query_ids, wanted, side="left"))


def label_facts(snapshot: Snapshot) -> LabelFacts:
    """Counts of the single judgments, in one reading."""
    seconds: list[npt.NDArray[np.float64]] = []
    sources: Counter[str] = Counter()
    relevances: Counter[str] = Counter()
    for batch in batches(snapshot, "judgments", ("seconds", "source", "relevance")):
        times = batch.column(0).to_numpy()
        seconds.append(times[times > 0])
        sources.update(_counts(batch.column(1)))
        relevances.update(_counts(batch.column(2)))
    timed = np.concatenate(seconds) if seconds else np.empty(0)
    votes = pq.read_table(snapshot.path("pairs"), columns=["votes"])["votes"]
    return LabelFacts(
        judgments=relevances.total(),
        unsure=relevances["unsure"],
        seconds=Spread.of(timed),
        timed=len(timed),
        sources=sources,
        votes=_counts(votes),
        agreement=agreement(_doubly_judged(snapshot)),
    )


def _doubly_judged(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    columns = ("query_id", "image_id", "relevance")
    for _, group in groupby(rows(snapshot, "judgments", columns), key=itemgetter(0, 1)):
        yield from combinations((relevance for _, _, relevance in group), 2)


def _counts(values: pa.Array | pa.ChunkedArray) -> Counter[Any]:
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(values).to_pylist()})


def list_facts(snapshot: Snapshot) -> ListFacts:
    """Counts of the candidate lists and the fixed lists."""
    queries = snapshot.labeled_queries.values()
    listed = [query for query in queries if query.list_size]
    table = pq.read_table(snapshot.path("pairs"), columns=["query_id", "rank"])
    ranked = table.filter(pc.is_valid(table["rank"]))["query_id"].to_numpy()
    judged = _per_query([query.query_id for query in listed], ranked)
    labels = snapshot.fixed_labels
    flags = [
        [labels.get((query_id, one.image_id)) for one in entries]
        for query_id, entries in groupby(snapshot.fixed(), key=attrgetter("query_id"))
        if query_id in snapshot.labeled_queries
    ]
    return ListFacts(
        filtered=sum(bool(query.species) for query in queries),
        listed=len(listed),
        cut=sum(query.list_size < query.list_total for query in listed),
        unfinished=sum(
            int(count) < query.list_size for count, query in zip(judged, listed, strict=True)
        ),
        fixed=len(flags),
        fit=sum(fit(bool(flag) for flag in one) for one in flags),
        fixed_images=sum(map(len, flags)),
        fixed_unjudged=sum(one.count(None) for one in flags),
    )


def image_facts(snapshot: Snapshot) -> ImageFacts:
    """Counts of the images, in one reading."""
    texts = ("dataset", "scientific_name")
    counts: dict[str, Counter[str]] = {name: Counter() for name in texts}
    licences: Counter[tuple[str, str]] = Counter()
    placed = held = dated = 0
    first, last = "", ""
    columns = (*texts, "latitude", "longitude", "rights_holder", "observed_at",
               "license", "license_url")  # fmt: skip
    for batch in batches(snapshot, "images", columns):
        column = dict(zip(columns, batch.columns, strict=True))
        for name in texts:
            counts[name].update(_counts(column[name]))
        given = pa.table({name: column[name] for name in ("license", "license_url")})
        groups = given.group_by(["license", "license_url"]).aggregate([([], "count_all")])
        for row in groups.to_pylist():
            licences[row["license"], row["license_url"]] += row["count_all"]
        held += _filled(column["rights_holder"])
        both = pc.and_(pc.is_valid(column["latitude"]), pc.is_valid(column["longitude"]))
        placed += both.true_count
        dates = column["observed_at"].filter(pc.not_equal(column["observed_at"], ""))
        dated += len(dates)
        if len(dates):
            ends = pc.min_max(pc.utf8_slice_codeunits(dates, 0, 10)).as_py()
            first = min(first or ends["min"], ends["min"])
            last = max(last, ends["max"])
    species = counts["scientific_name"]
    return ImageFacts(
        images=snapshot.image_count,
        species=len(set(species) - {""}),
        with_species=species.total() - species[""],
        with_place=placed,
        with_date=dated,
        with_holder=held,
        first_date=first,
        last_date=last,
        datasets=counts["dataset"],
        licences=_by_licence(licences),
    )


def _filled(column: pa.Array) -> int:
    return int(pc.not_equal(column, "").true_count)


def _by_licence(given: Counter[tuple[str, str]]) -> list[tuple[Licence, int]]:
    """How many images have each licence, spellings of one licence together; a text that isn't known
    is a licence of its own."""
    totals: Counter[Licence] = Counter()
    for (license, url), count in given.items():
        licence = licence_of(license, url)
        if licence.name == UNKNOWN.name:
            licence = replace(licence, name=" ".join(f"{license} {url}".split()))
        totals[licence] += count
    return sorted(totals.items(), key=lambda item: (-item[1], item[0].name, item[0].url))
