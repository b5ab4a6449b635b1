"""The images of a release, and the corpus that they are from."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedWriter, RawIOBase
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings
from django.db.models import BooleanField
from django.db.models.expressions import RawSQL

from core.sql import copy, fetch_all
from releases.snapshot.snapshot import FieldValue, SnapshotImage
from retrieval.corpus.models import CustomField, Image, SpeciesName
from retrieval.corpus.places import rounded_place, shown_uncertainty
from retrieval.custom_fields.selectors import value_text
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import has_open_flag
from retrieval.images.files import ImageGone, ImageRef, RootUnavailable, public_bytes
from retrieval.images.storage import is_stored

IMAGES_AT_A_TIME: Final = 5000

_BUFFER: Final = 1 << 20
_SPECIES: Final = 7
_COLUMNS: Final = (
    "id", "dataset", "source_id", "file_name", "sha256", "width", "height", "species_id",
    "species__scientific_name", "species__kingdom", "species__phylum", "species__class_name",
    "species__order", "species__family", "species__genus", "species__iconic_group", "license",
    "license_url", "rights_holder", "observed_at", "latitude", "longitude", "location_uncertainty",
    "root__location", "no_organism", "species__conservation_status", "elevation",
    "coordinates_obscured",
)  # fmt: skip
#: A bucket that everybody may read, and where the web has its files.
_INATURALIST: Final = "s3://inaturalist-open-data"
_INATURALIST_ADDRESS: Final = "https://inaturalist-open-data.s3.amazonaws.com"
_WEB_ADDRESS: Final = re.compile(r"https?://[^/\s]+/\S*")

_NOT_WITHDRAWN = (
    "i.id NOT IN (SELECT w.image_id FROM retrieval_imagewithdrawal w WHERE w.restored_at IS NULL)"
)


@dataclass(frozen=True, slots=True)
class Corpus:
    """What the corpus holds, without withdrawn images."""

    images: int
    species: int
    fingerprint: str
    """SHA-256 over "<image id> <SHA-256 of its file>\\n" of the images by id; empty if none."""


def released_images(image_ids: Sequence[int]) -> Iterator[SnapshotImage]:
    """The images with these ids, by id; ids of no image are left out.

    It streams from one statement with all ids in one array, which PostgreSQL looks up in a single
    walk along the index, and so mostly along the disk.
    """
    flagged = has_open_flag(ImageFlag.Kind.NO_ORGANISM)
    images = Image.objects.filter(_has_id(image_ids)).annotate(no_organism=flagged)
    rows = images.order_by("pk").values_list(*_COLUMNS)
    stream = rows.iterator(IMAGES_AT_A_TIME)
    # There are far fewer species than images, and the next images are mostly of the same ones.
    names: dict[int, str] = {}
    while part := list(islice(stream, IMAGES_AT_A_TIME)):
        unnamed = {row[_SPECIES] for row in part} - {None, *names}
        names |= dict.fromkeys(unnamed, "") | _vernacular_names(unnamed)
        yield from _images(part, names)


def released_fields() -> dict[str, str]:
    """The kinds of the custom fields that releases have, by name."""
    return dict(CustomField.objects.filter(in_releases=True).values_list("name", "kind"))


def released_field_values(
    image_ids: Sequence[int], fields: Mapping[str, str]
) -> Iterator[FieldValue]:
    """The values of the images with these ids in fields of these kinds by name, by image id and
    field; it streams as `released_images`.
    """
    images = Image.objects.filter(_has_id(image_ids)).exclude(custom_fields={})
    rows = images.order_by("pk").values_list("pk", "custom_fields")
    for image_id, values in rows.iterator(IMAGES_AT_A_TIME):
        for name in sorted(fields.keys() & values.keys()):
            yield FieldValue(image_id, name, fields[name], value_text(values[name]))


def _has_id(image_ids: Sequence[int]) -> RawSQL:
    """The condition that an image has one of these ids, all in one array."""
    condition = "retrieval_image.id = ANY(%s::bigint[])"
    return RawSQL(condition, [list(image_ids)], output_field=BooleanField())


def web_address(file_name: str, location: str = "") -> str:
    """The public address of an image on the web: its path, if that is an absolute address; or its
    address in iNaturalist's open bucket, if its root, at `location`, is there; else empty."""
    if _WEB_ADDRESS.fullmatch(file_name):
        return file_name
    if not f"{location}/".startswith(f"{_INATURALIST}/"):
        return ""
    folder = location.removeprefix(_INATURALIST)
    return quote(f"{_INATURALIST_ADDRESS}{folder}/{file_name}", safe=":/")


def corpus(species_ids: Sequence[int] = ()) -> Corpus:
    """Count the images of these species, empty for the whole corpus, and take their fingerprint;
    streams, however many there are.
    """
    hashed = _Hashing()
    # COPY takes no parameters.
    wanted = f" AND i.species_id IN ({', '.join(map(str, species_ids))})" if species_ids else ""
    with BufferedWriter(hashed, _BUFFER) as file:
        # Rows of COPY are exactly the lines that are hashed, and PostgreSQL writes them faster than
        # any cursor gives rows. They come one by one; the buffer takes them without Python's help.
        copy(
            f"COPY (SELECT i.id, i.sha256 FROM retrieval_image i WHERE {_NOT_WITHDRAWN}{wanted} "
            "ORDER BY i.id) TO STDOUT WITH (DELIMITER ' ')",
            file,
        )
    [(species,)] = fetch_all(
        "SELECT count(*) FROM retrieval_species s WHERE EXISTS (SELECT FROM retrieval_image i "
        f"WHERE i.species_id = s.id AND {_NOT_WITHDRAWN}{wanted})"
    )
    fingerprint = hashed.digest.hexdigest() if hashed.lines else ""
    return Corpus(images=hashed.lines, species=species, fingerprint=fingerprint)


class _Hashing(RawIOBase):
    """A file that keeps only the hash of what is written, and the number of its lines."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.lines = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = bytes(data)
        self.digest.update(written)
        self.lines += written.count(b"\n")
        return len(written)


def _images(rows: list[tuple[Any, ...]], names: dict[int, str]) -> Iterator[SnapshotImage]:
    """Images of rows of _COLUMNS, with the vernacular names of their species."""
    for (
        image_id, dataset, source_id, file_name, sha256, width, height, species_id,
        scientific_name, kingdom, phylum, class_name, order, family, genus, iconic_group,
        license_code, license_url, rights_holder, observed_at, latitude, longitude, uncertainty,
        location, no_organism, status, elevation, obscured,
    ) in rows:  # fmt: skip
        degrees = settings.ROUNDED_PLACES.get(status)
        placed = latitude is not None and longitude is not None
        uncertainty = shown_uncertainty(uncertainty, obscured=obscured and placed)
        if degrees is not None and placed:
            latitude, longitude, uncertainty = rounded_place(
                latitude, longitude, uncertainty, degrees=degrees
            )
            elevation = None
        yield SnapshotImage(
            image_id=image_id,
            dataset=dataset,
            source_id=source_id,
            file_name=file_name,
            sha256=sha256,
            width=width,
            height=height,
            scientific_name=scientific_name or "",
            vernacular_name=names.get(species_id, ""),
            kingdom=kingdom or "",
            phylum=phylum or "",
            class_name=class_name or "",
            order=order or "",
            family=family or "",
            genus=genus or "",
            iconic_group=iconic_group or "",
            license=license_code,
            license_url=license_url,
            rights_holder=rights_holder,
            observed_at=observed_at.isoformat() if observed_at else "",
            latitude=latitude,
            longitude=longitude,
            location_uncertainty=uncertainty,
            address=web_address(file_name, location or ""),
            no_organism=no_organism,
            elevation=elevation,
        )


def _vernacular_names(species_ids: set[int]) -> dict[int, str]:
    """A vernacular name of each species that has one: English before others, as
    `Species.common_name`."""
    names = (
        SpeciesName.objects.filter(species_id__in=species_ids)
        .exclude(language="")
        .order_by("species_id", "language", "pk")
        .values_list("species_id", "language", "name")
    )
    best: dict[int, tuple[bool, str]] = {}
    for species_id, language, name in names:
        foreign = language != "en"
        if species_id not in best or foreign < best[species_id][0]:
            best[species_id] = foreign, name
    return {species_id: name for species_id, (_, name) in best.items()}


def released_image_bytes(image_id: int, file_name: str, sha256: str) -> bytes | None:
    """The bytes of a released image, without metadata; None where its file isn't here, can't be
    read or isn't the one that was released.

    The store finds a file by `sha256`. An image outside the store is known by its id and path, and
    its bytes are hashed. Where the release has no `sha256`, since nobody had read the file, any
    present file of the image counts. RootUnavailable: its root doesn't answer, so nobody knows.
    """
    if sha256 and is_stored(sha256):
        ref = ImageRef(sha256, None, file_name)
    else:
        image = Image.objects.filter(pk=image_id, file_name=file_name).first()
        if image is None:
            return None
        ref = ImageRef(sha256 or image.sha256, image.root_id, file_name)
    try:
        return public_bytes(ref)
    except RootUnavailable:
        raise
    except ImageGone:
        return None
