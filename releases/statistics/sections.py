"""The sections of a release's statistics page: a chart, its message in words, and its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from django.utils.safestring import SafeString

from core.geo_grid import CELL
from core.templatetags.coordinates import latitude, longitude
from core.world_map import dots
from labeling.judging.grades import GRADES
from releases.formats.writing import counted
from releases.statistics.drawing import MOST_LINES, bars, histogram, lines, stacked
from releases.statistics.numbers import Numbers

MOST_CELLS: Final = 20


@dataclass(frozen=True, slots=True)
class Section:
    """One chart of the page."""

    key: str
    title: str
    says: str
    """The chart's message, in a sentence or two."""
    chart: SafeString = field(default_factory=SafeString)
    headings: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    """The figures, each as text; the first column names the row."""
    shape: str = ""
    """ "wide" across the page, or "tall" beside two others."""
    note: str = ""
    """Under the table: what it leaves out."""


def sections(numbers: Numbers) -> list[Section]:
    """The page's charts, in order; one without figures says why."""
    return [
        _labeled(numbers),
        _relevant(numbers),
        _ranks(numbers["ranks"]),
        _map(numbers["map"]),
        _categories(numbers["categories"]),
        _groups(numbers["iconic_groups"]),
        _seconds(numbers["seconds"]),
        _agreement(numbers["agreement"]),
        *([_people(numbers["people"])] if numbers["people"] else []),
        *([_grades(numbers["grades"])] if numbers["grades"] else []),
        *(
            _custom_field(field, number, numbers["images"])
            for number, field in enumerate(numbers["custom_fields"], 1)
        ),
    ]


def number(value: float) -> str:
    """A number for people: 1,234 or 3.5."""
    rounded = round(value, 1)
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _bin_name(low: float, high: float | None, unit: str, whole: bool) -> str:
    """ "20 to 49 images", or of the open bin "5,000 images or more"."""
    if high is None:
        return f"{low:,g} {unit} or more"
    if whole and high - 1 == low:
        return f"{low:,g} {unit}"
    return f"{low:,g} to {high - 1 if whole else high:,g} {unit}"


def _counted(key: str, title: str, summary: Numbers, what: str) -> Section:
    says = (
        f"{what.capitalize()} images per query: median {number(summary['median'])}, mean "
        f"{number(summary['mean'])}, from {number(summary['lowest'])} to "
        f"{number(summary['highest'])}."
    )
    return Section(
        key=key,
        title=title,
        says=says,
        chart=histogram(
            summary, x=f"{what} images of a query, from", y="queries", label=f"{title}. {says}"
        ),
        headings=[f"{what.capitalize()} images", "Queries"],
        rows=[
            [_bin_name(low, high, "images", whole=True), f"{count:,}"]
            for low, high, count in summary["bins"]
        ],
    )


def _labeled(numbers: Numbers) -> Section:
    title = "Images labeled per query"
    if numbers["labeled"] is None:
        return Section("labeled", title, "Which images were judged is not known.")
    return _counted("labeled", title, numbers["labeled"], "labeled")


def _relevant(numbers: Numbers) -> Section:
    title = "Relevant images per query"
    if numbers["relevant_per_query"] is None:
        return Section("relevant", title, "There are no queries in this release.")
    return _counted("relevant", title, numbers["relevant_per_query"], "relevant")


def _seconds(summary: Numbers | None) -> Section:
    title = "Seconds per judgment"
    if summary is None:
        return Section("seconds", title, "No judgment of this release has a time.")
    says = (
        f"Half of the judgments whose time is known took {number(summary['median'])} seconds or "
        f"less, and the mean is {number(summary['mean'])}; all together took "
        f"{number(summary['total'] / 3600)} hours."
    )
    return Section(
        key="seconds",
        title=title,
        says=says,
        chart=histogram(summary, x="seconds, from", y="judgments", label=f"{title}. {says}"),
        headings=["Time", "Judgments"],
        rows=[
            [_bin_name(low, high, "seconds", whole=False), f"{count:,}"]
            for low, high, count in summary["bins"]
        ],
    )


def _most(rows: list[Numbers], name: str) -> str:
    most = max(rows, key=lambda row: row["val"] + row["test"])
    return f"“{most[name] or 'None'}” has most queries, {most['val'] + most['test']}"


def _categories(rows: list[Numbers]) -> Section:
    title = "Queries by category"
    if not rows:
        return Section("categories", title, "There are no queries in this release.")
    above = len({row["supercategory"] for row in rows})
    says = (
        f"The queries are of {counted(len(rows), 'category', 'categories')} under "
        f"{counted(above, 'supercategory', 'supercategories')}; {_most(rows, 'category')}."
    )
    return Section(
        key="categories",
        title=title,
        says=says,
        chart=stacked(rows, key="category", label=f"{title}. {says}", group="supercategory"),
        shape="tall",
        headings=["Category", "Supercategory", "Validation", "Test"],
        rows=[
            [row["category"], row["supercategory"], str(row["val"]), str(row["test"])]
            for row in rows
        ],
    )


def _groups(rows: list[Numbers]) -> Section:
    title = "Queries by iconic group"
    if not rows:
        return Section("groups", title, "There are no queries in this release.")
    if all(row["iconic_group"] is None for row in rows):
        return Section("groups", title, "The queries’ iconic groups are not known.")
    rows = [
        row | {"iconic_group": "Not known" if row["iconic_group"] is None else row["iconic_group"]}
        for row in rows
    ]
    rows = sorted(rows, key=lambda row: (-row["val"] - row["test"], row["iconic_group"]))
    says = f"{_most(rows, 'iconic_group')}."
    return Section(
        key="groups",
        title=title,
        says=says,
        chart=stacked(rows, key="iconic_group", label=f"{title}. {says}"),
        shape="tall",
        headings=["Iconic group", "Validation", "Test"],
        rows=[[row["iconic_group"] or "None", str(row["val"]), str(row["test"])] for row in rows],
    )


def _ranks(numbers: Numbers) -> Section:
    title = "Relevant images found against rank"
    if not numbers["lines"]:
        return Section("ranks", title, "This release has no candidate lists with ranks.")
    at, whole = numbers["at"], numbers["lines"][0]
    half = next((k for k, share in zip(at, whole["shares"], strict=True) if share >= 0.5), None)
    says = (
        f"By rank 100 of its candidate list a query has shown "
        f"{_percent(whole['shares'][at.index(100)])} of its relevant images, on average"
        + (f"; half of them by rank {half:,} at the latest." if half else ".")
    )
    named = [line | {"name": line["name"] or "All queries"} for line in numbers["lines"]]
    return Section(
        key="ranks",
        title=title,
        says=says,
        chart=lines(at, named[:MOST_LINES], label=f"{title}. {says}"),
        headings=["Rank up to", *(line["name"] for line in named)],
        rows=[
            [f"{rank:,}", *(_percent(line["shares"][place]) for line in numbers["lines"])]
            for place, rank in enumerate(at)
        ],
        note="Mean over the queries with a relevant image; those found outside the list count as "
        "not found.",
    )


def _map(numbers: Numbers) -> Section:
    title = "Where the relevant images are from"
    cells = numbers["cells"]
    if not cells:
        return Section("map", title, "No relevant image of this release has a place.", shape="wide")
    shown = numbers["placed"] + numbers["unplaced"]
    says = (
        f"Of {shown:,} relevant images {numbers['placed']:,} have a place. A dot stands for "
        f"{CELL}° by {CELL}°; the largest holds {counted(cells[0][2], 'image', 'images')}."
    )
    left_out = len(cells) - MOST_CELLS
    return Section(
        key="map",
        title=title,
        says=says,
        chart=dots(cells, label=f"{title}. {says}"),
        headings=["Latitude", "Longitude", "Images"],
        rows=[
            [_span(south, latitude), _span(west, longitude), f"{count:,}"]
            for south, west, count in cells[:MOST_CELLS]
        ],
        shape="wide",
        note=f"And {left_out:,} more cells with fewer images." if left_out > 0 else "",
    )


def _span(low: int, words: Callable[[float, int], str]) -> str:
    """ "12° N to 15° N" """
    return f"{words(low, 0)} to {words(low + CELL, 0)}"


def _agreement(numbers: Numbers | None) -> Section:
    title = "Agreement"
    if numbers is None:
        return Section("agreement", title, "How far people agree is not known.")
    if not numbers["pairs"]:
        return Section("agreement", title, "No image was judged by two people for the same query.")
    says = (
        f"{counted(numbers['pairs'], 'pair', 'pairs')} of query and image "
        f"{'was' if numbers['pairs'] == 1 else 'were'} judged by two people or more. Of two "
        f"judgments of a pair {_percent(numbers['same'])} say the same, with unsure as not "
        "relevant."
    )
    if numbers["alpha"] is not None:
        says += f" Krippendorff’s alpha is {numbers['alpha']:.2f} (1: perfect, 0: as by chance)."
    words = {"relevant": "relevant", "not_relevant": "not relevant", "unsure": "unsure"}
    rows = [
        (" and ".join(words.get(label, label) for label in labels), count)
        for labels, count in numbers["given"]
    ]
    return Section(
        key="agreement",
        title=title,
        says=says,
        chart=bars(rows, x="pairs", label=f"{title}. {says}"),
        headings=["Labels given", "Pairs"],
        rows=[[name, f"{count:,}"] for name, count in rows],
    )


def _people(bins: list[list[int]]) -> Section:
    people, judgments, approved = (sum(column) for column in list(zip(*bins, strict=True))[2:])
    title = "People who judged"
    says = (
        f"{counted(people, 'person', 'people')} made {judgments:,} judgments on pairs "
        f"that two people or more judged. {approved:,} agree with the label and are approved, "
        f"{judgments - approved:,} are rejected: {_percent(approved / judgments)} agreement."
    )
    names = [_bin_name(low, high, "judgments", whole=True) for low, high, *_ in bins]
    return Section(
        key="people",
        title=title,
        says=says,
        chart=bars(
            [(name, judgments) for name, (_, _, _, judgments, _) in zip(names, bins, strict=True)],
            x="judgments of people with so many",
            label=f"{title}. {says}",
        ),
        headings=["A person’s judgments", "People", "Judgments", "Approved", "Rejected", "Agree"],
        rows=[
            [
                name,
                *(f"{count:,}" for count in (people, judgments, approved, judgments - approved)),
                _percent(approved / judgments),
            ]
            for name, (_, _, people, judgments, approved) in zip(names, bins, strict=True)
        ],
    )


def _grades(bins: list[list[int | None]]) -> Section:
    title = "Grades"
    counts = [[count or 0 for count in row] for _, _, *row in bins]
    totals = [sum(column) for column in zip(*counts, strict=True)]
    says = (
        "Of the judged pairs of queries that ask for grades "
        + ", ".join(
            f"{_percent(count / sum(totals))} are {name.lower()}"
            for name, count in zip(GRADES.values(), totals, strict=True)
        )
        + "."
    )
    names = [_ranks_name(low, high) for low, high, *_ in bins]
    return Section(
        key="grades",
        title=title,
        says=says,
        chart=bars(
            list(zip(GRADES.values(), totals, strict=True)), x="pairs", label=f"{title}. {says}"
        ),
        headings=["Rank", *GRADES.values(), "Pairs"],
        rows=[
            [name, *(_percent(count / sum(row)) for count in row), f"{sum(row):,}"]
            for name, row in zip(names, counts, strict=True)
        ],
    )


def _ranks_name(low: int | None, high: int | None) -> str:
    if low is None:
        return "Outside the list"
    if high is None:
        return f"{low:,} and more"
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _custom_field(about: Numbers, number: int, images: int) -> Section:
    title, with_value = about["field"], about["images"]
    says = f"{with_value:,} of {counted(images, 'image', 'images')} have a value."
    if about["kind"] == "number":
        rows = [(f"{_exact(low)} to {_exact(high)}", count) for low, high, count in about["bins"]]
        label = f"{title}. {says}"
        chart = histogram(about, x="value, from", y="images", label=label, edge=_exact)
    else:
        rows = [(name, count) for name, count in about["bars"]]
        others = with_value - sum(count for _, count in rows)
        if about["kind"] != "date" and (len(rows) == 1 or rows[0][1] > rows[1][1]):
            says += f" The most frequent is “{rows[0][0]}”, in {rows[0][1]:,}."
        if others:
            says += f" {others:,} have values that are less frequent than those shown."
        chart = bars(rows, x="images", label=f"{title}. {says}")
    return Section(
        key=f"field-{number}",
        title=title,
        says=says,
        chart=chart,
        headings=["Value", "Images"],
        rows=[[name, f"{count:,}"] for name, count in rows],
    )


def _exact(value: float) -> str:
    return f"{value:.10g}"
