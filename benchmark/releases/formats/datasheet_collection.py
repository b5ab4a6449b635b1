"""The datasheet's sections on how images were found and judged."""

from __future__ import annotations

from benchmark.releases.formats.datasheet_facts import Facts
from benchmark.releases.formats.markdown import counted, plain, share, table

SOURCE_WORDS = {
    "list": "in the candidate list",
    "search": "in a search",
    "similar": "among similar images",
    "import": "imported",
}


def collection(facts: Facts) -> list[tuple[str, str]]:
    """Questions and answers; an empty answer is for the maintainers to write."""
    return [
        (
            "How was the data associated with each instance acquired?",
            f"{_relevance(facts)} Species, dates, places and licences are as the images' source "
            "tells them.",
        ),
        ("What mechanisms or procedures were used to collect the data?", _procedure(facts)),
        ("If the dataset is a sample, what was the sampling strategy?", _sampling(facts)),
        (
            "Who was involved in the data collection process and how were they compensated?",
            _people(facts),
        ),
        ("How long did people take, and how far do they agree?", _effort(facts)),
        ("Over what timeframe was the data collected?", _timeframe(facts)),
        ("Were any ethical review processes conducted?", ""),
        (
            "Were the people whom the data relates to notified, did they consent, and can they "
            "revoke it?",
            "",
        ),
        ("Has the potential impact of the dataset on data subjects been analysed?", ""),
    ]


def preprocessing(facts: Facts) -> list[tuple[str, str]]:
    """Questions and answers; an empty answer is for the maintainers to write."""
    return [
        ("Was any preprocessing, cleaning or labelling of the data done?", _cleaning(facts)),
        (
            'Was the "raw" data saved in addition?',
            f"Every single judgment ({facts.labels.judgments:,}) is in judgments.csv."
            if facts.labels.judgments
            else "The release holds no single judgments.",
        ),
        (
            "Is the software that was used available?",
            f"The release was written by {plain(facts.header.software)}.",
        ),
    ]  # fmt: skip


def _relevance(facts: Facts) -> str:
    if facts.header.origin == "imported" and not facts.labels.judgments:
        return "Which images are relevant was read from files; how it was judged they don't tell."
    return "Relevance was judged by people who looked at the images."


def _people(facts: Facts) -> str:
    people = facts.header.annotators
    if people:
        count = f"{counted(people, 'annotator', 'annotators')} judged."
    elif facts.header.origin == "imported":
        count = "How many people judged isn't known."
    else:
        return "Nobody has judged yet."
    return f"{count} Who they were and how they were paid: *to be written by the maintainers.*"


def _cleaning(facts: Facts) -> str:
    if facts.header.origin == "imported":
        return "The release was imported as its files were."
    rule = plain(facts.header.consensus)
    return (
        "Images that were withdrawn from the collection and their judgments are left out. One "
        f"relevance per pair was made of the judgments by this rule: {rule}"
    )


def _procedure(facts: Facts) -> str:
    models = facts.header.models
    if not models:
        return "The release doesn't tell how candidate images were found."
    shown = table(
        ["model", "candidates asked for", "queries"],
        [
            [plain(one.name), ", ".join(f"{depth:,}" for depth in one.depths), f"{one.queries:,}"]
            for one in models
        ],
    )
    sources = ""
    if facts.labels.sources:
        counts = sorted(facts.labels.sources.items(), key=lambda item: (-item[1], item[0]))
        sources = "\n\nJudgments by where people met the image: " + "; ".join(
            f"{SOURCE_WORDS.get(name, plain(name))}: {share(count, facts.labels.judgments)}"
            for name, count in counts
        )
        sources += "."
    return (
        "For each query a model put the images within its species filter in the order of cosine "
        "similarity to its text, and people judged them from the first one on.\n\n"
        f"{shown}{sources}"
    )


def _sampling(facts: Facts) -> str:
    lists, queries = facts.lists, facts.labeled
    text = f"Queries with a species filter: {share(lists.filtered, queries)}."
    if facts.unknown_negatives and not lists.filtered:
        text = "Whether queries had a species filter is not known."
    if lists.fixed:
        text += (
            f" Fixed lists for re-ranking were made with {plain(facts.header.rerank_model)}; "
            f"{share(lists.fit, lists.fixed)} are kept, those of which at least one and at most "
            "half of the images are relevant."
        )
    return text


def _effort(facts: Facts) -> str:
    labels = facts.labels
    if labels.seconds is None:
        times = "No judgment's time is known."
    else:
        times = (
            f"Seconds a judgment, over the {labels.timed:,} whose time is known: median "
            f"{labels.seconds.median:.1f}, mean {labels.seconds.mean:.1f}; together "
            f"{_duration(labels.seconds.total)}."
        )
    if labels.judgments and facts.labeled:
        times += f" Judgments per query: {labels.judgments / facts.labeled:,.1f} on average."
    votes = ""
    if labels.votes:
        nobody = "not known" if facts.unknown_negatives else 0
        votes = "\n\n" + table(
            ["people who judged a pair", "pairs"],
            [
                [people or nobody, share(count, facts.pairs)]
                for people, count in sorted(labels.votes.items())
            ],
        )
    agreed = labels.agreement
    if not agreed.images:
        return f"{times}{votes}\n\nAgreement can't be told: no pair was judged by two people."
    kappa = "not defined" if agreed.kappa is None else f"{agreed.kappa:.2f}"
    both = counted(agreed.images, "such pair", "such pairs")
    return (
        f"{times}{votes}\n\nWhere two people judged the same pair ({both} of judgments), they "
        f"agree in {100 * agreed.observed:.1f} %; Cohen's kappa is {kappa}, with unsure as not "
        "relevant."
    )


def _duration(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:,.1f} hours" if hours >= 1 else f"{seconds / 60:.1f} minutes"


def _timeframe(facts: Facts) -> str:
    images = facts.images
    verb = "imported" if facts.header.origin == "imported" else "made"
    made = f"The release was {verb} on {facts.header.made_at[:10]}."
    if not images.with_date:
        return f"{made} No image's date is known."
    return (
        f"{made} The images were taken from {images.first_date} to {images.last_date}, as far as "
        f"their date is known ({share(images.with_date, images.images)})."
    )
