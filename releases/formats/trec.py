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
from pathlib import Path

from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.writing import ACCESS, PairColumns, pair_columns, text_file
from releases.snapshot.snapshot import Snapshot, SnapshotQuery


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write all files; those without rows are empty."""
    files = []
    pairs = pair_columns(snapshot)
    with text_file(directory, "trec/topics.tsv") as file:
        for query in snapshot.queries.values():
            file.write(f"{query.query_id}\t{_line(query.text)}\n")
    files.append(WrittenFile("trec/topics.tsv", Access.OPEN))
    for split, access in ACCESS.items():
        name = f"trec/topics_{split}.trec"
        with text_file(directory, name) as file:
            file.writelines(map(_topic, snapshot.queries_of(split).values()))
        files.append(WrittenFile(name, Access.OPEN))
        name = f"trec/qrels_{split}.txt"
        with text_file(directory, name) as file:
            file.writelines(_qrels(pairs.of_split(snapshot, split)))
        files.append(WrittenFile(name, access))
        if pairs.gains is not None:
            name = f"trec/qrels_graded_{split}.txt"
            with text_file(directory, name) as file:
                file.writelines(_qrels(pairs.of_split(snapshot, split), graded=True))
            files.append(WrittenFile(name, access))
    return files


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


def _qrels(pairs: PairColumns, *, graded: bool = False) -> Iterable[str]:
    for query_id, image_id, value in pairs.rows(graded=graded):
        yield f"{query_id} 0 {image_id} {value}\n"


FORMAT = Format(
    key="trec",
    title="TREC topics and qrels",
    about="For trec_eval, ir-measures and PyTerrier; judged images that aren't relevant as 0.",
    write=write,
)
