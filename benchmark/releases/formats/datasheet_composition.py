"""The datasheet's section on what the data set holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from benchmark.releases.formats.datasheet_facts import Facts, ImageFacts, Spread
from benchmark.releases.formats.markdown import counted, percent, plain, share, table

#: Rows of a table before the rest is summed up.
LONGEST_TABLE: Final = 25
_UNKNOWN: Final = " Which other images were judged is not known."
_SPLITS: Final = {"val": "validation", "test": "test"}


def composition(facts: Facts) -> list[tuple[str, str]]:
    """Questions and answers; an empty answer is for the maintainers to write."""
    return [
        (
            "What do the instances that comprise the dataset represent?",
            "Queries, each a text that says what an image should show; images; and pairs of a "
            "query and an image that people judged relevant or not relevant.",
        ),
        ("How many instances are there in total?", _totals(facts)),
        (
            "Does the dataset contain all possible instances or is it a sample of a larger set?",
            _sample(facts),
        ),
        (
            "What data does each instance consist of?",
            "A query: text, category, iconic group, split, species filter, guidelines for "
            "annotators. An image: path in its source, size, species and lineage, date, place and "
            "its uncertainty, licence and rights holder, where the source tells them. A pair: "
            "relevant or not, how many people judged it, and its rank in the query's list.",
        ),
        (
            "Is there a label or target associated with each instance?",
            f"{_labels(facts)} An image that nobody judged for a query has no label; measures "
            "count it as not relevant.",
        ),
        ("Is any information missing from individual instances?", _missing(facts.images)),
        (
            "Are relationships between individual instances made explicit?",
            "Images carry their species and its lineage, and queries their category.",
        ),
        ("Are there recommended data splits?", _splits(facts)),
        (
            "Are there any errors, sources of noise, or redundancies in the dataset?",
            _limits(facts),
        ),
        (
            "Is the dataset self-contained, or does it rely on external resources?",
            _self_contained(facts),
        ),
        ("Under which licences are the images?", _licences(facts.images)),
        ("Does the dataset contain data that might be considered confidential?", ""),
        (
            "Does the dataset contain data that, if viewed directly, might be offensive or "
            "threatening or cause anxiety?",
            "",
        ),
        ("Does the dataset relate to people, and can individuals be identified?", _people(facts)),
        ("Does the dataset contain data that might be considered sensitive in any way?", ""),
    ]


def _labels(facts: Facts) -> str:
    if not facts.pairs:
        return "No pair has one."
    if facts.header.origin == "imported" and facts.relevant == facts.pairs:
        pairs = counted(facts.pairs, "relevant pair", "relevant pairs")
        named = f"The release names {pairs}, and none that isn't relevant."
        return f"{named}{_UNKNOWN}" if facts.unknown_negatives else named
    relevant = share(facts.relevant, facts.pairs)
    if facts.unknown_negatives:
        return f"Of the pairs that the release names, {relevant} are relevant.{_UNKNOWN}"
    return f"Each judged pair is relevant or not: {relevant} are relevant."


def _totals(facts: Facts) -> str:
    queries = facts.queries
    splits = [query.split for query in queries]
    labels = [
        (word, facts.splits[split]) for split, word in _SPLITS.items() if split in facts.splits
    ]
    unknown = facts.unknown_negatives
    counts = table(
        ["", *_SPLITS.values(), "both"],
        [_row("queries", [splits.count(split) for split in _SPLITS])],
    )
    counts += "\n\n" + table(
        ["", *(word for word, _ in labels), *(["both"] if len(labels) > 1 else [])],
        [
            _row("judged pairs", [None if unknown else split.pairs for _, split in labels]),
            _row("relevant pairs", [split.relevant for _, split in labels]),
            _row("queries without a relevant image", [one.without_relevant for _, one in labels]),
        ],
    )
    spreads = table(
        ["per query", "least", "median", "mean", "most"],
        [
            [f"{name}, {word}", *_spread(spread)]
            for word, split in labels
            for name, spread in (
                ("judged images", split.judged_per_query),
                ("relevant images", split.relevant_per_query),
            )
            if spread is not None and not (name == "judged images" and facts.unknown_negatives)
        ],
    )
    named = facts.images.images
    images = (
        f"{counted(named, 'image is', 'images are')} named by a pair or a fixed list, of "
        f"{facts.images.species:,} species."
        if named
        else "No image is named by a pair or a fixed list."
    )
    if not queries:
        return f"{counts}\n\n{images}"
    kinds = Counter((query.supercategory, query.category) for query in queries)
    categories = table(
        ["supercategory", "category", *_SPLITS.values()],
        [
            [
                plain(supercategory),
                plain(category),
                *(
                    sum(
                        (query.supercategory, query.category, query.split)
                        == (supercategory, category, split)
                        for query in queries
                    )
                    for split in _SPLITS
                ),
            ]
            for supercategory, category in sorted(kinds)
        ],
    )
    groups = table(
        ["iconic group of the query", *_SPLITS.values()],
        [
            [
                "not known" if group is None else plain(group) or "none",
                *(
                    sum((query.iconic_group, query.split) == (group, split) for query in queries)
                    for split in _SPLITS
                ),
            ]
            for group in sorted(
                {query.iconic_group for query in queries},
                key=lambda group: (group is None, group or ""),
            )
        ],
    )
    terms = [query.scientific_terms for query in queries if query.scientific_terms is not None]
    return "\n\n".join(
        [
            counts,
            *([spreads] if facts.pairs else []),
            images,
            categories,
            groups,
            f"Queries with scientific terms: {share(sum(terms), len(terms))}."
            if terms
            else "Queries with scientific terms: not known.",
        ]
    )


def _row(name: str, values: Sequence[int | None]) -> list[str]:
    """A row of counts, with their sum where there are several; None is not known."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return [name, *["not known"] * (len(values) + (len(values) > 1))]
    sums = [sum(known)] if len(known) > 1 else []
    return [name, *(f"{one:,}" for one in [*known, *sums])]


def _spread(spread: Spread) -> list[str]:
    return [f"{spread.least:g}", f"{spread.median:g}", f"{spread.mean:.1f}", f"{spread.most:g}"]


def _sample(facts: Facts) -> str:
    header = facts.header
    if not header.corpus_images:
        return (
            "The release names only the images that were judged or listed; the collection that "
            "they come from isn't described by it."
        )
    return (
        f"The images are those of a collection of {header.corpus_images:,} images of "
        f"{header.corpus_species:,} species that somebody judged for a query or that a fixed list "
        f"holds. SHA-256 over the collection's images and their files: "
        f"`{header.corpus_fingerprint}`."
    )


def _missing(images: ImageFacts) -> str:
    return (
        "Images with a species: "
        f"{share(images.with_species, images.images)}; with coordinates: "
        f"{share(images.with_place, images.images)}; with a date: "
        f"{share(images.with_date, images.images)}; with a rights holder: "
        f"{share(images.with_holder, images.images)}."
    )


def _splits(facts: Facts) -> str:
    splits = [query.split for query in facts.queries]
    val, test = (splits.count(split) for split in _SPLITS)
    return (
        f"A validation split of {counted(val, 'query', 'queries')} for choosing methods and their "
        f"parameters, and a test split of {counted(test, 'query', 'queries')} for measuring. "
        "Splits divide queries; images are shared."
    )


def _limits(facts: Facts) -> str:
    labels, lists = facts.labels, facts.lists
    queries = facts.labeled
    limits = []
    if facts.header.origin == "imported":
        limits.append(
            "The release was imported from files. What they don't tell, such as judged images that "
            "aren't relevant, isn't known."
        )
    if lists.listed < queries:
        limits.append(
            f"{share(queries - lists.listed, queries)} queries have no candidate list here, so it "
            "isn't known how far down they were judged."
        )
    if queries > lists.filtered and not (facts.unknown_negatives and not lists.filtered):
        limits.append(
            f"{share(queries - lists.filtered, queries)} queries were labelled without a species "
            "filter: relevant images that the model ranked low may have been missed."
        )
    if lists.cut:
        limits.append(
            f"{share(lists.cut, lists.listed)} candidate lists were cut off before all images "
            "within the filter."
        )
    if lists.unfinished:
        limits.append(
            f"{share(lists.unfinished, lists.listed)} candidate lists were not judged to their "
            "end: people stop after a run of images that aren't relevant."
        )
    left_open = sum(bool(query.left_open) for query in facts.queries)
    if left_open:
        limits.append(
            f"{share(left_open, queries)} queries were completed with something left open: the "
            "stop rule not met, or images unsure or disputed. left\\_open.csv says what and why."
        )
    if lists.fixed_unjudged and facts.unknown_negatives:
        limits.append(
            f"Whether somebody judged {share(lists.fixed_unjudged, lists.fixed_images)} images of "
            "the fixed lists for re-ranking is not known; they count as not relevant."
        )
    elif lists.fixed_unjudged:
        limits.append(
            f"{share(lists.fixed_unjudged, lists.fixed_images)} images of the fixed lists for "
            "re-ranking were not judged for the query; they count as not relevant."
        )
    if labels.judgments:
        limits.append(
            f"{share(labels.votes[1], facts.pairs)} pairs were judged by one person only."
        )
    if labels.unsure:
        limits.append(
            f"{share(labels.unsure, labels.judgments)} judgments are unsure, which counts as not "
            "relevant."
        )
    return "\n".join(f"- {one}" for one in limits) or "None that the data show."


def _self_contained(facts: Facts) -> str:
    if not facts.images.images:
        return "The release names no images."
    names = [name for name in sorted(facts.images.datasets) if name]
    sources = ", ".join(plain(name) for name in names[:LONGEST_TABLE]) or "sources without a name"
    if len(names) > LONGEST_TABLE:
        sources += f" and {len(names) - LONGEST_TABLE:,} more"
    held = (
        "The pictures that may be passed on are part of the Hugging Face folder."
        if facts.header.include_images
        else "The pictures are not part of the release; image ids and paths lead to them."
    )
    return f"Images come from: {sources}. {held}"


def _licences(images: ImageFacts) -> str:
    if not images.licences:
        return "There are no images."
    shown = [
        [
            plain(licence.name),
            f"{count:,}",
            percent(count, images.images),
            "yes" if licence.may_redistribute else "no",
            "; ".join(licence.obligations) or licence.refusal or "none",
        ]
        for licence, count in images.licences[:LONGEST_TABLE]
    ]
    rest = images.licences[LONGEST_TABLE:]
    if rest:
        count = sum(one for _, one in rest)
        percentage = percent(count, images.images)
        shown.append([f"{len(rest):,} others", f"{count:,}", percentage, "", ""])
    allowed = sum(count for licence, count in images.licences if licence.may_redistribute)
    header = ["licence", "images", "share", "copies may be passed on", "terms"]
    return (
        f"{table(header, shown)}\n\nCopies of {share(allowed, images.images)} images may be passed "
        "on as far as their licence, in its usual spellings, is recognised. attribution.csv names "
        "rights holder and licence of each image."
    )


def _people(facts: Facts) -> str:
    images = facts.images
    holders = (
        f"The rights holders of {share(images.with_holder, images.images)} images are named, as "
        "their licences ask."
        if images.with_holder
        else "No rights holder of an image is named."
    )
    annotators = (
        "Annotators are numbered; no name of theirs is in the release."
        if facts.labels.judgments
        else "No annotator is told of."
    )
    return f"{annotators} {holders} Whether images show people: *to be written by the maintainers.*"
