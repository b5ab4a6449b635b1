"""Withdrawn and flagged images and places to be rounded: as new releases have them; made ones never
change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labeling.judging.models import Judgment
from labeling.queries.models import Query
from releases.making import labels, services
from releases.making.images import released_images
from releases.snapshot.release_files import RELEASE_FILES
from retrieval.corpus.models import Image, Species
from retrieval.flags.services import (
    image_flag_raise,
    image_flags_clear,
    image_restore,
    image_withdraw,
)
from tests.releases.toy import make_list

Judge = Callable[..., Judgment]


def contents(directory: Path) -> dict[str, str]:
    return {name: (directory / name).read_text() for name in RELEASE_FILES}


def rows(directory: Path, name: str) -> list[str]:
    """The lines of a file of a release, without the header."""
    return (directory / name).read_text().splitlines()[1:]


@pytest.fixture
def labeled(query: Query, judge: Judge, annotator: Any, other_annotator: Any) -> Query:
    """Images 1 to 4 of a list of four; only the first annotator judged image 2."""
    make_list(query, [1, 2, 3, 4])
    judge(query, 2, annotator, "relevant")
    for image in (1, 3):
        judge(query, image, other_annotator, "relevant")
    judge(query, 4, other_annotator, "not_relevant")
    return query


def test_a_new_release_has_no_label_of_a_withdrawn_image_and_a_made_one_stays(
    labeled: Query, reviewer: Any, var_dir: Path, tmp_path: Path
) -> None:
    made = services.release_export(name="v1", directory=tmp_path / "before", new=True)
    for image in (3, 4):
        image_withdraw(image=Image(pk=image), by=reviewer)
    assert services.release_export(name="v1", directory=tmp_path / "after") == made
    assert contents(tmp_path / "after") == contents(tmp_path / "before")
    release = services.release_export(name="v2", directory=tmp_path / "without", new=True)
    assert rows(tmp_path / "without", "inquire_annotations.csv") == [
        '30,1,"train/a, b/1.jpg"',
        '30,2,"train/a, b/2.jpg"',
    ]
    assert rows(tmp_path / "without", "judgments.csv") == [
        "30,1,relevant,annotator_2,1,0.000,list",
        "30,2,relevant,annotator_1,2,0.000,list",
    ]
    assert (release.positives, release.judgments) == (2, 2)
    assert Judgment.objects.count() == 4
    for image in (3, 4):
        image_restore(image=Image(pk=image), by=reviewer)
    services.release_export(name="v3", directory=tmp_path / "restored", new=True)
    assert contents(tmp_path / "restored") == contents(tmp_path / "before")


def test_withdrawals_take_no_statement_more_and_number_who_is_left(
    labeled: Query, reviewer: Any, django_assert_num_queries: Any
) -> None:
    image_withdraw(image=Image(pk=2), by=reviewer)
    with django_assert_num_queries(2):
        found = [(row.image_id, row.rank, row.annotator) for row, _ in labels.released_judgments()]
    assert found == [(1, 1, 1), (3, 3, 1), (4, 4, 1)]
    with django_assert_num_queries(1):
        assert labels.released_judgment_count() == 3


def test_a_release_knows_what_is_flagged_to_show_no_organism(
    images: list[Image], annotator: Any, reviewer: Any
) -> None:
    for number, kind in ((1, "no_organism"), (2, "poor_quality"), (3, "no_organism")):
        image_flag_raise(image=images[number - 1], kind=kind, by=annotator)
    image_flags_clear(image=images[2], by=reviewer)
    found = {one.image_id: one.no_organism for one in released_images(range(1, 7))}
    assert found == {number: number == 1 for number in range(1, 7)}


def test_places_of_species_that_a_setting_names_are_rounded(
    images: list[Image], settings: Any
) -> None:
    settings.ROUNDED_PLACES = {"EN": 0.5}
    toad = Species.objects.create(scientific_name="Bufo bufo", conservation_status="EN")
    place = {"latitude": 52.5163, "longitude": 13.3777, "elevation": 34.0}
    Image.objects.update(**place)
    Image.objects.filter(pk=1).update(species=toad)
    rounded, exact = released_images([1, 2])
    assert (exact.latitude, exact.longitude, exact.elevation) == tuple(place.values())
    assert (rounded.latitude, rounded.longitude, rounded.elevation) == (52.75, 13.25, None)
    assert rounded.location_uncertainty is not None
    assert rounded.location_uncertainty > 27_000
