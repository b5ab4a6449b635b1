"""The demo's species, scenes, captions, queries and collection."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from demo.corpus import DEFAULT_COUNT, corpus_scene, file_name, write_corpus
from demo.drawing import draw, jpeg
from demo.queries import QUERIES, read_scenes
from demo.scenes import ATTRIBUTES, WEIGHTS, sample, scene
from demo.species import SPECIES
from demo.training.captions import FORBIDDEN, write_caption
from demo.training.train import training_scene
from labeling.queries.categories import CATEGORIES

pytestmark = pytest.mark.pure

BY_NAME = {kind.english: kind for kind in SPECIES}
INAT_IMAGE_KEYS = {
    "id", "file_name", "width", "height", "license", "rights_holder", "date", "latitude",
    "longitude", "location_uncertainty",
}  # fmt: skip
INAT_CATEGORY_KEYS = {
    "id", "name", "common_name", "supercategory", "kingdom", "phylum", "class", "order",
    "family", "genus", "specific_epithet", "image_dir_name",
}  # fmt: skip


@pytest.fixture(scope="module")
def scenes() -> list:
    return [corpus_scene(index) for index in range(DEFAULT_COUNT)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), count=30, processes=1)


def test_species_are_many_and_fully_named() -> None:
    assert len(SPECIES) >= 24
    assert len({kind.scientific_name for kind in SPECIES}) == len(SPECIES)
    assert len({kind.body_plan.iconic_group for kind in SPECIES}) >= 8
    for kind in SPECIES:
        assert len(kind.lineage) == 7
        assert kind.lineage[-1].islower()
        assert kind.english
        assert kind.german
        assert len(kind.morphs) >= 2


def test_marsh_hopper_has_a_blue_morph() -> None:
    assert "blue" in BY_NAME["Marsh Hopper"].morphs


def test_lookalike_groups_hold_two_or_three_species() -> None:
    groups = Counter(kind.lookalikes for kind in SPECIES if kind.lookalikes)
    assert groups
    assert set(groups.values()) <= {2, 3}


def test_same_seed_gives_the_same_bytes() -> None:
    assert scene(37, 5) == scene(37, 5)
    assert scene(37, 5) != scene(37, 6)
    assert jpeg(scene(37, 5)) == jpeg(scene(37, 5))


def test_every_species_can_be_drawn_doing_everything_it_does() -> None:
    rng = random.Random(3)
    for kind in SPECIES:
        for behavior in WEIGHTS["behavior"]:
            if behavior == "guarding eggs" and kind.plan == "fox":
                continue
            shown = {"behavior": behavior, "habitat": kind.body_plan.habitats[0]}
            drawn = sample(rng, kind, shown, "demo")
            assert draw(drawn).startswith("<svg")


def test_impossible_wishes_are_refused() -> None:
    with pytest.raises(ValueError, match="holds no Maned Brushfox with"):
        sample(random.Random(1), BY_NAME["Maned Brushfox"], {"behavior": "guarding eggs"}, "demo")


def test_demo_and_training_share_no_combination(scenes: list) -> None:
    training = [training_scene(index) for index in range(6000)]
    assert {one.partition for one in scenes} == {"demo"}
    assert {one.partition for one in training} == {"training"}
    assert not {one.combination() for one in scenes} & {one.combination() for one in training}
    assert all(one.is_possible() for one in scenes)


def test_captions_state_only_what_is_shown_and_never_a_query() -> None:
    rng = random.Random(9)
    texts = {query.query_text.lower() for query in QUERIES if len(query.shows) > 1}
    for index in range(4000):
        shown = training_scene(index)
        caption = write_caption(shown, rng)
        assert caption.facts not in FORBIDDEN
        assert caption.text.lower() not in texts
        assert all(shown.fact(name) == value for name, value in caption.facts)


def test_queries_cover_every_category_of_inquire() -> None:
    assert len(QUERIES) == 24
    assert len({query.query_id for query in QUERIES}) == 24
    assert "two blue marsh hoppers on a rock at night" in {query.query_text for query in QUERIES}
    assert {query.category for query in QUERIES} == set(CATEGORIES)
    assert Counter(query.split for query in QUERIES) == {"val": 5, "test": 19}
    assert 10 <= sum(bool(query.species) for query in QUERIES) <= 14


def test_every_query_has_enough_answers_within_its_filter(scenes: list) -> None:
    for query in QUERIES:
        matching = [one for one in scenes if query.matches(one)]
        assert 8 <= len(matching) <= 150, (query.query_text, len(matching))
        assert all(query.admits(one) for one in matching)


def test_corpus_has_the_inat24_layout(corpus: Path) -> None:
    content = json.loads((corpus / "train.json").read_text(encoding="utf-8"))
    assert set(content) == {"info", "licenses", "categories", "images", "annotations"}
    assert len(content["images"]) == len(content["annotations"]) == 30
    licenses = {entry["id"] for entry in content["licenses"]}
    by_id = {entry["id"]: entry for entry in content["categories"]}
    for entry in by_id.values():
        assert set(entry) >= INAT_CATEGORY_KEYS
        assert set(entry["vernacular_names"]) == {"en", "de"}
    for record, note in zip(content["images"], content["annotations"], strict=True):
        assert set(record) == INAT_IMAGE_KEYS
        assert record["license"] in licenses
        assert -90 <= record["latitude"] <= 90
        category = by_id[note["category_id"]]
        assert record["file_name"].startswith(f"train/{category['image_dir_name']}/")
        with Image.open(corpus / record["file_name"]) as image:
            assert (image.format, image.size) == ("JPEG", (224, 224))


def test_truth_file_gives_the_exact_answer(corpus: Path) -> None:
    with (corpus / "scenes.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["image_id", *ATTRIBUTES]
    query = next(query for query in QUERIES if query.query_text == "Rose Stilt")
    expected = {int(row["image_id"]) for row in rows if row["species"] == "Litornis rosea"}
    true = read_scenes(corpus)
    assert {number for number in true if query.matches(true[number])} == expected
    assert expected < {number for number in true if query.admits(true[number])}


def test_a_second_run_changes_nothing(corpus: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in corpus.rglob("*") if path.is_file()}
    seen: list[tuple[int, int]] = []
    write_corpus(corpus, count=30, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(30, 30)]
    assert before == {path: path.stat().st_mtime_ns for path in corpus.rglob("*") if path.is_file()}


def test_interrupted_and_damaged_runs_are_completed(tmp_path: Path) -> None:
    write_corpus(tmp_path, count=12, processes=1)
    intact = {index: (tmp_path / file_name(index, 2024)).read_bytes() for index in range(12)}
    (tmp_path / file_name(3, 2024)).write_bytes(intact[3][:100])
    (tmp_path / file_name(5, 2024)).unlink()
    (tmp_path / "train.json").unlink()
    seen: list[tuple[int, int]] = []
    write_corpus(
        tmp_path, count=12, processes=1, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(10, 12), (12, 12)]
    for index, content in intact.items():
        assert (tmp_path / file_name(index, 2024)).read_bytes() == content
    assert len(json.loads((tmp_path / "train.json").read_text(encoding="utf-8"))["images"]) == 12
    assert not list(tmp_path.rglob("*.part"))


def test_two_processes_draw_the_same_as_one(tmp_path: Path) -> None:
    write_corpus(tmp_path / "two", count=26, processes=2)
    name = file_name(25, 2024)
    assert (tmp_path / "two" / name).read_bytes() == jpeg(corpus_scene(25))


def test_an_empty_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one"):
        write_corpus(tmp_path, count=0)
