"""Queries and judgments from CSV files: whole or not at all, and twice without doubling."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from labeling.judging.models import Judgment, JudgmentEvent
from labeling.lifecycle.imports import (
    LINES_OF_UPLOADS,
    ImportReport,
    JudgmentImportRefused,
    QueryImportRefused,
    QueryImportReport,
    judgments_import,
    queries_import,
    queries_import_uploads,
)
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs
from tests.labeling.judging import judge

HEADER = "query_id,query_text,supercategory,category,iconic_group"
NEWT = "7,a newt,Species,Species ID,Amphibians"


def load(*lines: str, name: str = "queries.csv", **options: Any) -> QueryImportReport:
    data = "\n".join(lines).encode()
    return queries_import_uploads(files=[(name, data)], by=None, **options)


def refusals(*lines: str, name: str = "queries.csv", **options: Any) -> list[str]:
    with pytest.raises(QueryImportRefused) as refused:
        load(*lines, name=name, **options)
    return list(map(str, refused.value.errors))


@pytest.mark.django_db
class TestQueries:
    def test_inquires_queries_come_in_without_a_loss(self, shared_dir):
        # The other file goes the same way; what it reads is held by the tests of the format.
        file = shared_dir / "inquire" / "inquire_queries_val.csv"
        out = io.StringIO()
        call_command("import_queries", str(file), stdout=out)
        assert out.getvalue() == "50 added, 0 updated, 0 unchanged, 0 left as they are\n"
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        stored = {query.query_id: query for query in Query.objects.filter(split="val")}
        assert len(rows) == len(stored) == 50
        for row in rows:
            query = stored[int(row["query_id"])]
            assert row["query_text"] == query.text
            assert row["category"] == query.category
            assert row["supercategory"] == query.supercategory
            assert row["iconic_group"] == query.iconic_group
        call_command("import_queries", str(file), stdout=out)
        assert out.getvalue().endswith("\n0 added, 0 updated, 50 unchanged, 0 left as they are\n")

    def test_columns_that_a_file_lacks_are_left_alone(self):
        toad = make_species("Bufo bufo")
        more = HEADER + ",species,guidelines,scientific_terms,split"
        load(more, NEWT + ",Bufo bufo,Look at the belly.,true,val")
        assert load(HEADER, NEWT) == QueryImportReport(unchanged=1)
        query = Query.objects.get(query_id=7)
        assert list(query.species.all()) == [toad]
        assert (query.guidelines, query.scientific_terms, query.split) == (
            "Look at the belly.",
            True,
            "val",
        )
        report = load(more, NEWT + ",,,false,test")
        assert report.updated == 1
        assert report.rows[0].changes == (
            ("split", "val", "test"),
            ("guidelines", "Look at the belly.", ""),
            ("scientific terms", "yes", "no"),
            ("species", "Bufo bufo", ""),
        )
        query.refresh_from_db()
        assert query.species.count() == 0
        assert (query.guidelines, query.scientific_terms, query.split) == ("", False, "test")

    def test_the_split_comes_from_the_name_unless_it_is_given(self):
        for name, split, expected in (
            ("q_val.csv", "", "val"),
            ("q_val.csv", "test", "test"),
            ("../../etc/q_val.csv", "", "val"),
            ("queries.csv", "", "test"),
        ):
            load(HEADER, NEWT, name=name, split=split)
            query = Query.objects.get()
            assert query.split == expected
            query.delete()

    def test_blank_lines_before_the_header_hide_no_column(self):
        load("", HEADER + ",guidelines", NEWT + ",Look at the belly.")
        load("", HEADER + ",guidelines", NEWT + ",Look twice.")
        assert Query.objects.get().guidelines == "Look twice."

    def test_one_bad_row_refuses_the_file_whole(self):
        assert refusals(HEADER, NEWT, "8,a frog,Species,Dances,") == [
            "queries.csv, line 3, category: unknown category 'Dances'; known are "
            + "; ".join(dict(Query._meta.get_field("category").choices or ()))
        ]
        # Also what only the database knows.
        toads = [make_species(f"Bufo b{n}") for n in range(3)]
        wrong = (NEWT + ",Bufo", "8,a frog,Species,Species ID,,Nix nix")
        assert refusals(HEADER + ",species", *wrong) == [
            "queries.csv, line 3, species: not in the corpus: Nix nix; import its images first"
        ]
        assert not Query.objects.exists()
        # A genus means its species.
        load(HEADER + ",species", wrong[0])
        assert set(Query.objects.get().species.all()) == set(toads)

    def test_a_number_in_two_files_is_refused(self):
        data = f"{HEADER}\n{NEWT}\n".encode()
        with pytest.raises(QueryImportRefused) as refused:
            queries_import(files=[("q_val.csv", data), ("q_test.csv", data)], by=None)
        assert str(refused.value) == (
            "q_test.csv, line 2, query_id: 7 is already in q_val.csv, line 2"
        )
        assert not Query.objects.exists()

    @pytest.mark.parametrize("ending", ["\n", "\n" + NEWT])
    def test_an_upload_has_a_thousand_lines_at_most_and_the_command_any_number(
        self, ending, tmp_path
    ):
        text = HEADER + "\n" + NEWT + ending * LINES_OF_UPLOADS
        [refusal] = refusals(text)
        assert refusal.startswith("queries.csv, line 1001: an upload may have 1,000 lines")
        # Of all files together.
        half = (HEADER + "\n" * 600).encode()
        with pytest.raises(QueryImportRefused, match=r"q_test\.csv, line 1001"):
            queries_import_uploads(files=[("q_val.csv", half), ("q_test.csv", half)], by=None)
        assert not Query.objects.exists()
        path = tmp_path / "queries.csv"
        path.write_text(HEADER + "\n" + NEWT + "\n" * 2000)
        call_command("import_queries", str(path), stdout=io.StringIO())
        assert Query.objects.get().query_id == 7

    def test_a_text_that_the_model_cuts_is_told_with_the_words_it_does_not_read(
        self, toy_model, clients
    ):
        make_images(1)
        long = " ".join(f"word{number}" for number in range(60))
        report = load(HEADER, f"7,{long},Species,Species ID,", "8,a newt,Species,Species ID,")
        [cut] = report.cut
        assert (cut.text, cut.model) == (long, toy_model.name)
        assert long.endswith(cut.unread)
        assert 0 < len(cut.unread) < len(long)
        said = f"can’t read all of this text. It leaves out the end: “{cut.unread}”."
        query = Query.objects.get(query_id=8)
        for text, told in ((long, True), ("a crested newt", False)):
            form = {"text": text, "category": "Species ID", "split": "val", "query_id": 8}
            page = clients["admin"].post(f"/queries/{query.pk}/edit/", form, follow=True)
            assert (said in page.content.decode()) == told
            found = clients["admin"].get("/api/images/matches/", {"text": text}).json()
            assert found["ranked"]["unread"] == (cut.unread if told else "")

    def test_a_number_that_was_given_here_is_no_number_of_a_file(self, new_query):
        query = new_query("a toad")
        line = f"{query.query_id},a newt,Species,Species ID,Amphibians"
        report = load(HEADER, line, NEWT.replace("7", "99"))
        assert (report.added, report.updated, report.left) == (1, 0, 1)
        assert report.rows[0].left.startswith("no import brought it")
        query.refresh_from_db()
        assert (query.text, query.edits.count()) == ("a toad", 0)
        assert load(HEADER, line, named=[query.query_id]).updated == 1
        query.refresh_from_db()
        assert query.text == "a newt"
        # From now on it is the file's.
        assert load(HEADER, line.replace("newt", "frog")).updated == 1

    def test_what_was_judged_for_is_changed_only_where_it_is_named(
        self, toy_model, open_query, admin
    ):
        make_images(1)
        query = open_query("a newt", query_id=7, imported=True)
        judge(query, admin, [0], "relevant")
        other = "7,a frog,Species,Species ID,Amphibians"
        report = load(HEADER, other)
        assert (report.left, report.updated) == (1, 0)
        [row] = report.rows
        assert row.left.startswith("it has judgments")
        assert ("text", "a newt", "a frog") in row.changes
        query.refresh_from_db()
        assert query.text == "a newt"
        assert load(HEADER, other, named=[7]).updated == 1
        query.refresh_from_db()
        assert query.text == "a frog"

    def test_a_dry_run_tells_what_would_be_and_changes_nothing(self, capsys, tmp_path):
        load(HEADER, NEWT)
        lines = (HEADER, NEWT.replace("a newt", "a crested newt"), "8,a frog,Species,Species ID,")
        report = load(*lines, dry_run=True)
        assert (report.added, report.updated) == (1, 1)
        assert Query.objects.values_list("text", flat=True).get() == "a newt"
        path = tmp_path / "queries.csv"
        path.write_text("\n".join(lines))
        call_command("import_queries", str(path), "--dry-run")
        assert capsys.readouterr().out.splitlines() == [
            "7: changed",
            "  text: 'a newt' -> 'a crested newt'",
            "1 added, 1 updated, 0 unchanged, 0 left as they are (a dry run)",
        ]
        assert Query.objects.values_list("text", flat=True).get() == "a newt"
        assert load(*lines) == report

    def test_the_page_shows_what_a_file_would_do_before_it_does(self, clients, new_query):
        written = new_query("a toad", query_id=3)
        lines = [HEADER, NEWT, '3,"a stork\n on its nest ",Species,Species ID,Birds']
        client = clients["admin"]
        upload = SimpleUploadedFile("q_val.csv", "\n".join(lines).encode())
        page = client.post("/queries/import/", {"file": upload})
        assert "no import brought it" in page.content.decode()
        assert page.context["report"].added == 1
        assert list(Query.objects.all()) == [written]
        form = {"kept": page.context["kept"], "split": "", "import": ""}
        assert client.post("/queries/import/", form).status_code == 302
        assert Query.objects.get(query_id=7).split == "val"
        written.refresh_from_db()
        assert written.text == "a toad"
        assert client.post("/queries/import/", form | {"update": "3"}).status_code == 302
        written.refresh_from_db()
        assert written.text == "a stork\n on its nest "
        page = client.get(f"/queries/{written.pk}/").content.decode()
        assert "<del>a toad</del>" in page
        for broken in ({"kept": form["kept"][1:]}, {}):
            page = client.post("/queries/import/", broken | {"import": ""})
            assert page.status_code == 200
            assert page.context["form"].errors

    def test_a_new_text_of_a_complete_query_is_refused(self, toy_model, open_query, admin):
        make_images(1)
        query = open_query(query_id=7, imported=True)
        judge(query, admin, [0], "relevant")
        query_transition(query=query, to_state="complete", by=admin, note="Enough.")
        lines = (HEADER, "6,a frog,Species,Species ID,", NEWT)
        [refusal] = refusals(*lines, named=[7])
        assert refusal.startswith("queries.csv, line 3: The query is complete")
        assert Query.objects.count() == 1

    def test_a_new_text_of_an_open_query_makes_a_new_list(self, open_query, toy_model):
        make_images(3)
        query = open_query("a newt", query_id=7, imported=True)
        load(HEADER, "7,other,Species,Species ID,")
        run_jobs()
        query.refresh_from_db()
        assert query.current_list is not None
        assert query.current_list.text == "other"
        assert query.current_list.candidates.order_by("rank")[0].image_id == FIRST_ID + 2

    def test_the_command_names_every_error(self, tmp_path):
        path = tmp_path / "bad.csv"
        path.write_bytes(b"query_id,query_text\n1,a\n")
        errors = io.StringIO()
        with pytest.raises(CommandError, match="Nothing was imported: 3 errors"):
            call_command("import_queries", str(path), stderr=errors)
        assert errors.getvalue().splitlines() == [
            f"bad.csv, line 1, {column}: the header must name this column once; it names "
            "query_id, query_text"
            for column in ("supercategory", "category", "iconic_group")
        ]


class TestJudgments:
    @pytest.fixture
    def images(self, toy_model) -> list[Image]:
        return make_images(4)

    def bring(self, annotator: Any, *rows: str) -> ImportReport:
        data = "\n".join(["query_id,image_id,relevance", *rows]).encode()
        return judgments_import(data=data, name="j.csv", annotator=annotator)

    def test_twice_without_doubling_and_changes_are_kept(self, images, open_query, annotator):
        query = open_query(query_id=7)
        judge(query, annotator, [2], "not_relevant")
        rows = [f"7,{FIRST_ID},relevant", f"7,{FIRST_ID + 2},relevant"]
        assert self.bring(annotator, *rows) == ImportReport(added=1, updated=1)
        assert self.bring(annotator, *rows) == ImportReport(unchanged=2)
        stored = Judgment.objects.order_by("image_id").values_list(
            "image_id", "relevance", "source", "rank"
        )
        assert list(stored) == [
            (FIRST_ID, "relevant", "import", 1),
            (FIRST_ID + 2, "relevant", "import", 3),
        ]
        assert JudgmentEvent.objects.count() == 3

    def test_every_error_of_the_file_and_of_what_it_names_is_reported_by_line(
        self, images, open_query, annotator, admin
    ):
        open_query(query_id=7)
        done = open_query("done", query_id=8)
        judge(done, annotator, [0], "relevant")
        query_transition(query=done, to_state="complete", by=admin, note="Enough.")
        with pytest.raises(JudgmentImportRefused) as refused:
            self.bring(
                annotator,
                "9,1,unsure",
                "7,1,maybe",
                f"7,{FIRST_ID},relevant",
                f"8,{FIRST_ID},unsure",
                f"7,{FIRST_ID},unsure",
                "7,x,unsure",
            )
        assert str(refused.value).splitlines() == [
            "j.csv, line 2, query_id: there is no query 9",
            "j.csv, line 2, image_id: there is no image 1 in the corpus",
            "j.csv, line 3, relevance: 'maybe' is none of not_relevant, relevant, unsure",
            "j.csv, line 3, image_id: there is no image 1 in the corpus",
            "j.csv, line 5, query_id: query 8 is complete; reopen it to change its judgments",
            f"j.csv, line 6, image_id: query 7 and image {FIRST_ID} are already on line 4",
            "j.csv, line 7, image_id: 'x' is not a whole number",
        ]
        assert Judgment.objects.count() == 1

    def test_the_command(self, images, open_query, annotator, tmp_path):
        open_query(query_id=7)
        path = tmp_path / "j.csv"
        path.write_text(f"query_id,image_id\n7,{FIRST_ID}\n")
        out = io.StringIO()
        call_command("import_judgments", str(path), annotator="ann", stdout=out)
        assert out.getvalue() == "1 added, 0 changed, 0 unchanged\n"
        with pytest.raises(CommandError, match="There is no user 'nobody'"):
            call_command("import_judgments", str(path), annotator="nobody")
        path.write_text("query_id\n")
        with pytest.raises(CommandError, match="Nothing was imported: 1 errors"):
            call_command("import_judgments", str(path), annotator="ann", stderr=out)


@pytest.mark.django_db
def test_a_pipe_is_refused_by_name(tmp_path, annotator):
    os.mkfifo(tmp_path / "pipe.csv")
    for command in (["import_queries"], ["import_judgments", "--annotator", "ann"]):
        with pytest.raises(CommandError, match=r"pipe\.csv: Not a regular file"):
            call_command(*command, str(tmp_path / "pipe.csv"))
