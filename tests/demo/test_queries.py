"""The demo queries: created and opened once, left alone afterwards."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from annotator.models import User
from demo.corpus import corpus_scene
from demo.queries import QUERIES
from demo.scenes import ATTRIBUTES
from demo.steps import DATASET, DemoError, demo_queries_load
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from tests.labeling.conftest import FIRST_ID, make_images, make_species, run_jobs


@pytest.fixture
def demo_species(toy_model: Any) -> None:
    for number, name in enumerate({name for demo in QUERIES for name in demo.species}):
        make_images(1, first=number, species=make_species(name))


def test_loading_twice_makes_each_once_and_opens_it(demo_species: None, admin: Any) -> None:
    first = demo_queries_load(by=admin)
    run_jobs()
    second = demo_queries_load(by=admin)
    assert [query.pk for query in first] == [query.pk for query in second]
    assert Query.objects.count() == len(QUERIES) == 24
    assert set(Query.objects.values_list("state", flat=True)) == {"open"}
    assert [query.query_id for query in first] == list(range(1, 25))
    assert [query.lists.count() for query in first] == [1] * 24
    for query, demo in zip(first, QUERIES, strict=True):
        assert query.category == demo.category
        names = query.species.values_list("scientific_name", flat=True)
        assert sorted(names) == sorted(demo.species)


def test_loading_leaves_what_people_made_of_a_query(demo_species: None, admin: Any) -> None:
    query = demo_queries_load(by=admin)[3]
    Query.objects.filter(pk=query.pk).update(state="complete", guidelines="Ours.")
    demo_queries_load(by=admin)
    query.refresh_from_db()
    assert (query.state, query.guidelines) == ("complete", "Ours.")


def test_a_taken_number_is_left_to_its_query(
    demo_species: None, new_query: Any, admin: Any
) -> None:
    own = new_query("our own", query_id=1)
    loaded = demo_queries_load(by=admin)
    assert loaded[0].query_id == 2
    assert loaded[1].query_id == 3
    own.refresh_from_db()
    assert own.text == "our own"


def test_without_the_corpus_it_says_so(toy_model: Any, admin: Any) -> None:
    with pytest.raises(DemoError, match="Import more of the demo corpus first"):
        demo_queries_load(by=admin)


def test_the_truth_is_judged_of_whole_lists(
    toy_model: Any, admin: Any, settings: Any, tmp_path: Path
) -> None:
    """Every image of a list is judged by what is drawn, also below 300 negatives in a row."""
    User.objects.filter(pk=admin.pk).update(username="admin")
    [demo_query] = [one for one in QUERIES if one.query_id == 4]
    scenes = [corpus_scene(number) for number in range(700)]
    (tmp_path / "demo").mkdir()
    with (tmp_path / "demo" / "scenes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image_id", *ATTRIBUTES])
        writer.writerows([number, *scene.combination()] for number, scene in enumerate(scenes))
    for image in make_images(len(scenes)):
        Image.objects.filter(pk=image.pk).update(
            dataset=DATASET, source_id=str(image.pk - FIRST_ID)
        )
    [query] = demo_queries_load(by=admin, demo_queries=[demo_query])
    run_jobs()
    settings.VAR_DIR = tmp_path
    for _ in range(2):
        call_command("demo_truth", "4", "5", stdout=io.StringIO())
        query.refresh_from_db()
        assert query.state == "complete"
        judged = Judgment.objects.filter(query=query)
        assert judged.count() == len(scenes)
        relevant = judged.filter(relevance="relevant").values_list("image", flat=True)
        truth = {FIRST_ID + n for n, scene in enumerate(scenes) if demo_query.matches(scene)}
        assert set(relevant) == truth != set()
