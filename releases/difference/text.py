"""A difference between two versions in words: sentences for a page, and a Markdown file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from releases.difference.difference import JUDGMENT_CHANGES
from releases.formats.writing import counted, plain

FIRST_VERSION: Final = "This is the first version."
NO_SNAPSHOT: Final = (
    "The version before was made without a snapshot, so what changed since can't be told."
)
WITHHELD: Final = "Which labels of the test split changed is withheld."
RUNS_RULE: Final = (
    "Means in percent over the queries of the split that both versions have and score, of the runs "
    "that were public when this version was made. A query that a run doesn't hold scores 0."
)
NOTHING: Final = "Nothing changed."


def sentences(difference: dict[str, Any]) -> list[str]:
    """The changes, one sentence each, of a `Difference` as a dict or of `without_test_labels`;
    [NOTHING] where nothing changed."""
    changes = [
        f"{counted(len(difference[key]), 'query', 'queries')} {words}."
        for key, words in (
            ("added", "added"),
            ("dropped", "dropped"),
            ("reworded", "reworded"),
            ("moved", "moved between the splits"),
            ("category", "put into another category"),
            ("species", "given another species filter"),
            ("lists", "given a candidate list of another model or depth"),
        )
        if difference[key]
    ]
    counts = difference["judgments"]
    changed = [
        f"{counts[name]:,} {words}" for name, words in JUDGMENT_CHANGES.items() if counts[name]
    ]
    if changed:
        queries = counted(len(difference["judgments_by_query"]), "query", "queries")
        if difference.get("withheld"):
            queries = f"{queries} of the validation split"
        changes.append(f"Judged pairs in {queries} that both versions have: {', '.join(changed)}.")
    if difference["corpus"]["changed"]:
        was, now = difference["corpus"]["images"]
        changes.append(
            f"The corpus changed: {now:,} images as before, but not the same."
            if was == now
            else f"The corpus changed: from {was:,} to {now:,} images."
        )
    was, now = difference["rerank_model"]
    if was != now:
        changes.append(
            f"The fixed lists for re-ranking are of {now or 'no model'}; "
            f"they were of {was or 'no model'}."
        )
    return changes + [_runs_sentence(table) for table in difference.get("runs", [])] or [NOTHING]


def runs_title(table: dict[str, Any]) -> str:
    """The title of a table of `Difference.runs`."""
    words = {"val": "validation", "test": "test", "full": "the corpus", "rerank": "the fixed lists"}
    return f"Runs over {words[table['task']]}, {words[table['split']]} queries"


def _runs_sentence(table: dict[str, Any]) -> str:
    moved = sum(was != now for was, now in (run["rank"] for run in table["runs"]))
    tau = "isn't defined" if table["tau_b"] is None else f"is {table['tau_b']:.2f}"
    return (
        f"{runs_title(table)}: of {counted(len(table['runs']), 'run', 'runs')} {moved:,} "
        f"{'changes' if moved == 1 else 'change'} rank by "
        f"{table['means'][0]}; τ-b of the two orders {tau}."
    )


def runs_rows(table: dict[str, Any]) -> list[list[str]]:
    """The headings of a table of `Difference.runs`, then a row for each run."""
    names = (*table["means"], "Rank")
    rows = [["Run", *(f"{name} {when}" for name in names for when in ("was", "is"))]]
    for run in table["runs"]:
        both = zip(run["was"], run["now"], strict=True)
        scores = [f"{100 * value:.1f}" for pair in both for value in pair]
        rows.append([run["name"], *scores, *map(str, run["rank"])])
    return rows


def markdown(difference: dict[str, Any], *, title: str, previous: str) -> str:
    """The difference as a Markdown document; `previous` names the version before, and is empty
    where there is none. An empty difference means that it isn't known.
    """
    lines = [f"# {plain(title)}: what changed", ""]
    if not previous:
        lines += [FIRST_VERSION]
    elif not difference:
        lines += [f"Compared with {plain(previous)}.", "", NO_SNAPSHOT]
    else:
        made_at = difference["previous"]["made_at"]
        lines += [f"Compared with {plain(previous)}, made {made_at}.", ""]
        lines += [f"- {plain(sentence)}" for sentence in sentences(difference)]
        lines += _details(difference)
    return "\n".join(lines) + "\n"


def _details(difference: dict[str, Any]) -> list[str]:
    query_rows = {
        key: [
            (
                query["query_id"],
                query["text"],
                query["split"],
                query["category"],
                _count(
                    query["judged"], "not known" if query["relevant"] is not None else "withheld"
                ),
                _count(query["relevant"], "withheld"),
            )
            for query in difference[key]
        ]
        for key in ("added", "dropped")
    }
    headings = ("Query", "Text", "Split", "Category", "Judged", "Relevant")
    lines = _table("Queries added", headings, query_rows["added"])
    lines += _table("Queries dropped", headings, query_rows["dropped"])
    for key, title in (
        ("reworded", "Queries reworded"),
        ("moved", "Queries moved between the splits"),
        ("category", "Queries in another category"),
        ("species", "Species filters"),
        ("lists", "Candidate lists"),
    ):
        lines += _table(
            title,
            ("Query", "Was", "Now"),
            [
                (change["query_id"], value_text(change["was"]), value_text(change["now"]))
                for change in difference[key]
            ],
        )
    lines += _table(
        "Judged pairs",
        ("Query", "Text", *(words.capitalize() for words in JUDGMENT_CHANGES.values())),
        [
            (query["query_id"], query["text"], *(query[name] for name in JUDGMENT_CHANGES))
            for query in difference["judgments_by_query"]
        ],
    )
    for table in difference.get("runs", []):
        names, *run_rows = runs_rows(table)
        lines += [*_table(runs_title(table), names, run_rows), "", RUNS_RULE]
    if difference.get("withheld"):
        lines += ["", WITHHELD]
    corpus = difference["corpus"]
    if corpus["changed"]:
        rows = [
            (name, *map(value_text, corpus[name])) for name in ("images", "species", "fingerprint")
        ]
        lines += _table("Corpus", ("", "Was", "Now"), rows)
    return lines


def _count(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:,}"


def value_text(value: Any) -> str:
    """A value of a `QueryChange`, for people."""
    if isinstance(value, dict):
        return f"{value['model']}, {value['depth']:,} deep" if value["model"] else "no list"
    if isinstance(value, list):
        return ", ".join(value) or "whole corpus"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    body = [f"| {' | '.join(plain(str(cell)) for cell in row)} |" for row in rows]
    if not body:
        return []
    head = f"| {' | '.join(headings)} |"
    return ["", f"## {title}", "", head, f"|{'---|' * len(headings)}", *body]
