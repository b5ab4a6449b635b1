"""The kept numbers of images are those that a count gives, whatever is written."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import Count

from retrieval.corpus.counts import WrongCount, image_count, image_counts, image_counts_check
from retrieval.corpus.models import CorpusCount, Image, ImageWithdrawal, SpeciesCount
from retrieval.embedding.counts import embedded_counts
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.services import image_restore, image_withdraw
from tests.retrieval.making import embed_rows, image_row

pytestmark = pytest.mark.django_db

COLUMNS = "id,dataset,source_id,file_name,sha256,format,width,height,size_bytes,species_id"


def kept() -> tuple[int, dict[int, int]]:
    """The kept numbers: of the corpus, and by species."""
    total = CorpusCount.objects.values_list("images", flat=True).first()
    species = SpeciesCount.objects.filter(images__gt=0).values_list("species", "images")
    return total or 0, dict(species)


def counted() -> tuple[int, dict[int, int]]:
    """The same by counting rows."""
    known = Image.objects.exclude(species=None).order_by().values("species")
    return Image.objects.count(), dict(known.annotate(n=Count("pk")).values_list("species", "n"))


def copy(rows: list[tuple[int, int | None]]) -> None:
    """Bring (id, species id) in by one COPY."""
    lines = "".join(
        f"{pk}\ttoy\t{pk}\t{pk}.jpg\t{pk:064x}\tJPEG\t4\t3\t100\t{species or 'none'}"
        "\t\t\t\t2026-01-01\n"
        for pk, species in rows
    )
    with connection.cursor() as cursor:
        cursor.copy_expert(
            f"COPY retrieval_image ({COLUMNS},license,license_url,rights_holder,created_at)"
            " FROM STDIN WITH (NULL 'none')",
            io.StringIO(lines),
        )


def refused(pk: int, species: int | None) -> None:
    """Bring an image in, and one of a species that there isn't."""
    copy([(pk, species), (pk + 5000, 10**9)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_random_writes_leave_the_numbers_right(animals: dict[str, Any]) -> None:
    drawn = random.Random(5)
    species: list[int | None] = [None, *(one.pk for one in animals.values())]
    free = iter(range(1, 10_000))

    def some(most: int = 40) -> list[int]:
        ids = list(Image.objects.values_list("pk", flat=True))
        return drawn.sample(ids, min(len(ids), drawn.randrange(most)))

    for _ in range(40):
        match drawn.randrange(6):
            case 0:
                copy([(next(free), drawn.choice(species)) for _ in range(drawn.randrange(1, 80))])
            case 1:
                row = image_row(next(free))
                row.species_id = drawn.choice(species)
                row.save()
            case 2:
                Image.objects.filter(pk__in=some()).update(species=drawn.choice(species))
            case 3:
                changed = list(Image.objects.filter(pk__in=some()))
                for image in changed:
                    image.species_id = drawn.choice(species)
                Image.objects.bulk_update(changed, ["species"])
            case 4:
                Image.objects.filter(pk__in=some(most=15)).delete()
            case 5:
                with pytest.raises(IntegrityError), transaction.atomic():
                    refused(next(free), species[1])
        assert kept() == counted()
    assert kept()[0] > 50
    assert image_counts_check() == []


def test_what_changes_no_number_takes_no_lock(animals: dict[str, Any]) -> None:
    copy([(1, animals["Ursus arctos"].pk), (2, None)])
    before = CorpusCount.objects.extra(select={"at": "xmin::text || ctid::text"}).values_list("at")
    place = before.get()
    Image.objects.filter(pk=1).update(license="CC0")
    assert before.get() == place
    Image.objects.filter(pk=2).update(species=animals["Ursus arctos"])
    assert before.get() != place


def test_withdrawn_images_are_in_no_number(
    animals: dict[str, Any], toy_model: EmbeddingModel, admin: Any
) -> None:
    brown, polar = animals["Ursus arctos"].pk, animals["Ursus maritimus"].pk
    copy([(1, brown), (2, brown), (3, polar), (4, None)])
    for pk in (1, 4):
        image_withdraw(image=Image.objects.get(pk=pk), by=admin)
    assert image_count() == 2
    assert image_count(species_ids=[brown]) == 1
    assert image_count(species_ids=[brown, polar]) == 2
    assert image_counts([brown, polar, 10**9]) == {brown: 1, polar: 1}
    began = ImageWithdrawal.objects.get(image=1).withdrawn_at
    image_restore(image=Image.objects.get(pk=1), by=admin)
    assert image_count(species_ids=[brown]) == 2
    assert image_count(species_ids=[brown], at=began) == 1
    assert image_count(at=began) == 3
    image_withdraw(image=Image.objects.get(pk=1), by=admin)
    assert image_count(species_ids=[brown], at=began) == 1
    assert image_count(species_ids=[brown]) == 1


def test_each_models_embedded_images_are_counted(
    animals: dict[str, Any], toy_model: EmbeddingModel, admin: Any
) -> None:
    other = embedding_model_get_or_create(name="other", dimension=2)
    brown, polar = animals["Ursus arctos"].pk, animals["Ursus maritimus"].pk
    copy([(1, brown), (2, brown), (3, polar), (4, None)])
    embed_rows(toy_model, {1: [1, 0, 0], 3: [0, 1, 0]})
    embed_rows(other, {pk: [1, 0] for pk in (1, 2, 3, 4)})
    image_withdraw(image=Image.objects.get(pk=2), by=admin)
    assert embedded_counts([toy_model, other]) == {toy_model.pk: 2, other.pk: 3}
    image_withdraw(image=Image.objects.get(pk=3), by=admin)
    assert embedded_counts([toy_model, other]) == {toy_model.pk: 1, other.pk: 2}
    new = embedding_model_get_or_create(name="new", dimension=2)
    assert embedded_counts([new]) == {new.pk: 0}


def test_wrong_numbers_are_named_and_put_right(animals: dict[str, Any], capsys: Any) -> None:
    copy([(1, animals["Ursus arctos"].pk), (2, animals["Ursus maritimus"].pk), (3, None)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    call_command("check_counts")
    assert "All numbers of images are right." in capsys.readouterr().out
    CorpusCount.objects.update(images=7)
    SpeciesCount.objects.filter(species=animals["Ursus arctos"]).update(images=0)
    SpeciesCount.objects.create(species=animals["Danaus plexippus"], images=1)
    assert image_counts_check() == [
        WrongCount("", 7, 3),
        WrongCount("Danaus plexippus", 1, 0),
        WrongCount("Ursus arctos", 0, 1),
    ]
    with pytest.raises(CommandError, match="3 numbers are wrong"):
        call_command("check_counts")
    assert "The whole corpus: 7 stored, 3 counted" in capsys.readouterr().out
    call_command("check_counts", repair=True)
    assert kept() == counted() == (3, {
        animals["Ursus arctos"].pk: 1, animals["Ursus maritimus"].pk: 1,
    })  # fmt: skip
    assert image_counts_check() == []
