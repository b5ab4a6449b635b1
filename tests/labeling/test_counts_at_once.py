"""Numbers of images while several write at once: right, without waiting in a circle, and never in
the way of labeling.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from django.db import connection, transaction

from retrieval.corpus.counts import image_counts_check
from retrieval.corpus.models import Image, Species
from retrieval.flags.services import image_flag_raise, image_restore, image_withdraw
from tests.labeling.conftest import FIRST_ID, embed, make_images, make_species
from tests.labeling.judging import judge
from tests.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)

INSERT = (
    "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width, height,"
    " size_bytes, species_id, license, license_url, rights_holder, created_at)"
    " VALUES (%s, 'other', %s, 'x.jpg', 'f', 'JPEG', 4, 3, 100, %s, '', '', '', now())"
)


@contextmanager
def unfinished_import(species: Species) -> Iterator[None]:
    """Another connection has brought an image in and hasn't committed yet."""
    known = connection.settings_dict
    other = psycopg2.connect(host=known["HOST"], user=known["USER"], dbname=known["NAME"])
    try:
        with other.cursor() as cursor:
            cursor.execute(INSERT, [999_999, "1", species.pk])
        yield
        other.commit()
    finally:
        other.close()


def test_an_import_holds_nobody_up_who_labels(toy_model, open_query, annotator, admin):
    toad = make_species("Bufo bufo")
    make_images(5, species=toad)
    late = make_images(1, first=5, species=toad, embedded=False)
    query = open_query()
    image = Image.objects.get(pk=FIRST_ID)
    with unfinished_import(toad), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '5s'")
        judge(query, annotator, [0, 1], "relevant")
        image_flag_raise(image=image, kind="person", by=annotator)
        image_withdraw(image=image, by=admin)
        assert image_restore(image=image, by=admin)
        embed(late)
        Image.objects.filter(pk=FIRST_ID + 1).update(license="CC0")
    assert Image.objects.count() == 7
    assert image_counts_check() == []


def test_writers_at_once_leave_the_numbers_right(db):
    species = [make_species(f"Bufo b{number}") for number in range(6)]
    make_images(300, species=species[0], embedded=False)

    def writer(number: int) -> Callable[[], None]:
        def write() -> None:
            drawn = random.Random(number)
            own = [FIRST_ID + pk for pk in range(300) if pk % 4 == number]
            for _ in range(15):
                with transaction.atomic():
                    some = Image.objects.filter(pk__in=drawn.sample(own, 20))
                    some.update(species=drawn.choice([None, *species]))
                    Image.objects.filter(pk__in=drawn.sample(own, 2)).delete()

        return write

    assert at_once(*(writer(number) for number in range(4))) == [None] * 4
    assert 0 < Image.objects.count() < 300
    assert image_counts_check() == []
