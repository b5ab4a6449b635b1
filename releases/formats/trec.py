"""TREC topics and qrels, as trec_eval, ir-measures and PyTerrier read them.

    trec/topics_val.trec, trec/topics_test.trec   <top> with num, title, desc, narr
    trec/topics.tsv                               query_id, text; both splits
    trec/qrels_val.txt, trec/qrels_test.txt       query_id 0 image_id relevance
    trec/qrels_graded_val.txt, …_test.txt         the same with grades, where a query has some

Topics have one line a field: runs of white space are one blank, and &, < and > are escaped as in
SGML, so texts that hold them differ from INQUIRE's CSV there. The narrative is the query's
guidelines. Judged images that aren't relevant have the relevance 0; unjudged ones have no line.
Graded qrels are for nDCG and ERR: 3 definitely, 2 partly, 1 mostly not, 0 definitely not, and 1 or
0 in queries without grades. Which grades are relevant, the other qrels say.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from releases.formats.base import Files
from releases.formats.writing import SPLIT_NAMES
from releases.snapshot.qrels import Qrels
from releases.snapshot.snapshot import Snapshot, SnapshotQuery


def write(snapshot: Snapshot, files: Files) -> None:
    """Write the topics of both splits, and the qrels of those that are labeled; files without rows
    are empty."""
    topics = (f"{query.query_id}\t{_line(query.text)}\n" for query in snapshot.queries.values())
    files.text("trec/topics.tsv", topics)
    for split in SPLIT_NAMES:
        files.text(f"trec/topics_{split}.trec", map(_topic, snapshot.queries_of(split).values()))
    for split, qrels in snapshot.labeled_qrels():
        files.text(f"trec/qrels_{split}.txt", _lines(qrels))
        if qrels.gains is not None:
            files.text(f"trec/qrels_graded_{split}.txt", _lines(qrels, graded=True))


def _topic(query: SnapshotQuery) -> str:
    text, guidelines = (
        html.escape(_line(words), quote=False) for words in (query.text, query.guidelines)
    )
    return (
        f"<top>\n\n<num> Number: {query.query_id}\n<title> {text}\n\n"
        f"<desc> Description:\n{text}\n\n<narr> Narrative:\n{guidelines}\n\n</top>\n\n"
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _lines(qrels: Qrels, *, graded: bool = False) -> Iterable[str]:
    for query_id, image_id, value in qrels.rows(graded=graded):
        yield f"{query_id} 0 {image_id} {value}\n"
