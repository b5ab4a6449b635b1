"""TREC topics and qrels, read by other programs' readers."""

import io
from html.parser import HTMLParser

import ir_measures
import pytest
from ir_measures import AP, P, nDCG

from labeling.queries.files import read_queries
from releases.formats.base import Access
from releases.formats.trec import write
from releases.snapshot.release_files import QUERY_FILES
from tests.releases.snapshots import (
    FORMULA,
    empty_snapshot,
    format_files,
    header,
    query,
    toy_snapshot,
    write_snapshot,
)

pytestmark = pytest.mark.pure


class Topics(HTMLParser):
    """Reads topics as SGML: the words of each field of each topic."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.topics = []
        self.field = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "top":
            self.topics.append({})
        self.field = tag

    def handle_endtag(self, tag):
        assert tag == "top"

    def handle_data(self, data):
        if self.topics and self.field != "top" and data.strip():
            assert self.field not in self.topics[-1]
            self.topics[-1][self.field] = " ".join(data.split())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("written")
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    assert {(file.name, file.access) for file in files} == {
        ("trec/topics.tsv", Access.OPEN),
        ("trec/topics_val.trec", Access.OPEN),
        ("trec/topics_test.trec", Access.OPEN),
        ("trec/qrels_val.txt", Access.OPEN),
        ("trec/qrels_test.txt", Access.LABELS),
    }
    return tmp_path / "trec"


def test_topics_are_read_as_sgml_and_as_two_columns(written):
    nasty = "two lines of text: 狐 🦊 café </title> & <b>bold</b>"
    assert Topics((written / "topics_test.trec").read_text(encoding="utf-8")).topics == [
        {"num": "Number: 8", "title": FORMULA, "desc": f"Description: {FORMULA}",
         "narr": "Narrative:"},
        {"num": "Number: 13", "title": nasty, "desc": f"Description: {nasty}",
         "narr": "Narrative: a b c & d"},
        {"num": "Number: 34", "title": "a query that nobody judged",
         "desc": "Description: a query that nobody judged", "narr": "Narrative:"},
    ]  # fmt: skip
    val = Topics((written / "topics_val.trec").read_text(encoding="utf-8")).topics
    assert [topic["num"] for topic in val] == ["Number: 3", "Number: 21"]
    assert val[0]["narr"] == 'Narrative: Not "lying", <i>'
    lines = (written / "topics.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t") for line in lines] == [
        ["3", 'A mongoose, standing "upright"; alert'],
        ["8", FORMULA],
        ["13", "two lines of text: 狐 🦊 café </title> & <b>bold</b>"],
        ["21", "-1+1 @penguins"],
        ["34", "a query that nobody judged"],
    ]


def test_qrels_hold_judged_negatives_and_score_a_run(written):
    qrels = list(ir_measures.read_trec_qrels(str(written / "qrels_test.txt")))
    assert [(one.query_id, one.doc_id, one.relevance) for one in qrels] == [
        ("8", "1", 1), ("8", "6", 0), ("8", "7", 1), ("8", "8", 0), ("13", "5", 1), ("13", "6", 0),
    ]  # fmt: skip
    qrels = list(ir_measures.read_trec_qrels(str(written / "qrels_val.txt")))
    run = "".join(
        f"{query_id} Q0 {image_id} {rank} {-rank} toy\n"
        for query_id, image_ids in ((3, (3, 1, 4, 2)), (21, (9, 10, 11)))
        for rank, image_id in enumerate(image_ids, start=1)
    )
    found = ir_measures.calc_aggregate(
        [AP, P @ 2, nDCG @ 1], qrels, ir_measures.read_trec_run(io.StringIO(run))
    )
    assert found[AP] == pytest.approx(((1 / 2 + 2 / 4) / 2 + 1) / 2)
    assert found[P @ 2] == pytest.approx((1 / 2 + 1) / 2)
    assert found[nDCG @ 1] == pytest.approx((0 + 1) / 2)


def test_the_250_queries_of_inquire_are_topics(tmp_path, shared_dir):
    texts = {}
    for name in QUERY_FILES.values():
        with (shared_dir / "inquire" / name).open("rb") as file:
            texts |= {row.query_id: row.query_text for row in read_queries(file, name=name)[0]}
    queries = [query(query_id, text) for query_id, text in sorted(texts.items())]
    format_files(
        write,
        write_snapshot(tmp_path / "snapshot", header=header(), queries=queries),
        tmp_path,
    )
    topics = Topics((tmp_path / "trec/topics_test.trec").read_text(encoding="utf-8")).topics
    assert {int(topic["num"].split()[1]): topic["title"] for topic in topics} == {
        query_id: text.strip() for query_id, text in texts.items()
    }
    assert len(topics) == 250


def test_without_queries_the_files_are_empty(tmp_path):
    files = format_files(write, empty_snapshot(tmp_path / "snapshot"), tmp_path)
    assert [(tmp_path / file.name).read_bytes() for file in files] == [b""] * 5
