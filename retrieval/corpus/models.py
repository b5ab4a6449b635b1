"""Species, images, their counts, withdrawals and takedowns."""

from __future__ import annotations

import hashlib
from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.db import models
from django.db.models.functions import Now

from retrieval.corpus.addresses import signed


class Species(models.Model):
    """A taxon at species rank with its lineage."""

    scientific_name = models.CharField(max_length=200, unique=True)
    kingdom = models.CharField(max_length=100, blank=True)
    phylum = models.CharField(max_length=100, blank=True)
    class_name = models.CharField("class", max_length=100, blank=True)
    order = models.CharField(max_length=100, blank=True)
    family = models.CharField(max_length=100, blank=True)
    genus = models.CharField(max_length=100, blank=True)
    specific_epithet = models.CharField(max_length=100, blank=True)
    iconic_group = models.CharField(max_length=40, blank=True)
    lookalike_group = models.CharField(max_length=100, blank=True)
    conservation_status = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text="of the IUCN Red List, such as EN",
    )

    class Meta:
        verbose_name_plural = "species"
        ordering = ["scientific_name"]
        indexes = [
            # A genus, family or look-alike group in a species filter expands to its species.
            models.Index(fields=["genus"], name="species_genus"),
            models.Index(fields=["family"], name="species_family"),
            models.Index(fields=["lookalike_group"], name="species_lookalike"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(scientific_name=""), name="species_scientific_name_not_blank"
            ),
        ]

    def __str__(self) -> str:
        return self.scientific_name

    @property
    def lineage(self) -> list[str]:
        """The known ranks from kingdom to genus, highest first."""
        ranks = (
            self.kingdom, self.phylum, self.class_name, self.order, self.family, self.genus,
        )  # fmt: skip
        return [name for name in ranks if name]

    @property
    def common_name(self) -> str:
        """The first vernacular name, English before others, or an empty string."""
        names = [n for n in self.names.all() if n.language]
        names.sort(key=lambda n: (n.language != "en", n.language, n.pk))
        return names[0].name if names else ""


class SpeciesName(models.Model):
    """A name by which a species is found: the scientific (language "") or a vernacular one."""

    species = models.ForeignKey(Species, on_delete=models.CASCADE, related_name="names")
    language = models.CharField(
        max_length=20, blank=True, help_text="BCP 47 code; empty for the scientific name"
    )
    name = models.CharField(max_length=200)
    search_text = models.TextField(
        help_text="the name in lower case without accents, for typo-tolerant search"
    )

    class Meta:
        ordering = ["language", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["species", "language", "name"], name="species_name_unique"
            ),
        ]
        indexes = [
            # Autocomplete by trigram similarity.
            GinIndex(
                fields=["search_text"], opclasses=["gin_trgm_ops"], name="species_name_trigram"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ImageRoot(models.Model):
    """Where images lie that are not copied: a folder, or an S3 bucket with a prefix of keys.

    Rows never change, so each process may cache them.
    """

    location = models.CharField(
        max_length=1000, unique=True, help_text="/data/inat24, or s3://bucket/prefix"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.location


class Image(models.Model):
    """One image of the corpus.

    The primary key is the image id in releases and runs: the id in the source data set if that is a
    free integer, else the next free one.
    """

    ADDRESS_FIELDS: ClassVar = ("id", "sha256", "root_id", "file_name", "size_bytes")
    """The fields that `url` and `thumbnail_url` depend on."""

    id = models.BigIntegerField(primary_key=True)
    dataset = models.CharField(max_length=100, help_text="the data set it was imported from")
    source_id = models.CharField(max_length=500, help_text="its id in that data set")
    file_name = models.CharField(
        max_length=500, help_text="its path in that data set; the image_path of a release"
    )
    root = models.ForeignKey(
        ImageRoot,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        # Nothing selects images by root, and no root is deleted.
        db_index=False,
        help_text="where its file stays, at file_name; none: in the store, by its SHA-256",
    )
    sha256 = models.CharField(
        max_length=64,
        blank=True,
        help_text="of the source file's bytes; empty while nobody has read a file at a root",
    )
    format = models.CharField(max_length=20, help_text="of the source file, as Pillow names it")
    width = models.PositiveIntegerField(help_text="pixels, upright")
    height = models.PositiveIntegerField(help_text="pixels, upright")
    size_bytes = models.PositiveBigIntegerField(help_text="0 while unknown")
    # No index of its own: image_species begins with it.
    species = models.ForeignKey(
        Species,
        on_delete=models.PROTECT,
        related_name="images",
        null=True,
        blank=True,
        db_index=False,
    )
    taxon_text = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="what the source calls the taxon, where that is no species",
    )
    folder = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text="the names of its folders that are no species, such as animals/birds",
    )
    license = models.CharField(max_length=200, blank=True)
    license_url = models.CharField(max_length=500, blank=True)
    license_text = models.CharField(
        max_length=2000,
        blank=True,
        default="",
        db_default="",
        help_text="the license in the source's own words",
    )
    rights_holder = models.CharField(max_length=500, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    latitude = models.FloatField(null=True, blank=True)
    longitude = models.FloatField(null=True, blank=True)
    location_uncertainty = models.FloatField(null=True, blank=True, help_text="meters")
    coordinates_obscured = models.BooleanField(
        db_default=False, default=False, help_text="the source blurred the place"
    )
    elevation = models.FloatField(null=True, blank=True, help_text="meters above the sea")
    observer = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text="the source's id of the person",
    )
    custom_fields = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="values by the names of custom fields: numbers, texts, true or false, ISO dates",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "source_id"], name="image_source_unique"),
            models.CheckConstraint(
                condition=models.Q(latitude__isnull=True) | models.Q(latitude__range=(-90, 90)),
                name="image_latitude_range",
            ),
            models.CheckConstraint(
                condition=models.Q(longitude__isnull=True) | models.Q(longitude__range=(-180, 180)),
                name="image_longitude_range",
            ),
            models.CheckConstraint(
                condition=models.Q(width__gt=0, height__gt=0), name="image_size_positive"
            ),
            models.CheckConstraint(
                condition=models.Q(root__isnull=False) | ~models.Q(sha256=""),
                name="image_somewhere",
            ),
        ]
        indexes = [
            # Several records of the same image share one stored file.
            models.Index(fields=["sha256"], condition=~models.Q(sha256=""), name="image_sha256"),
            # The images of a species, and the first few of them.
            models.Index(fields=["species", "id"], name="image_species"),
            # Images since a moment; they are added in its order, so an index of blocks will do.
            BrinIndex(fields=["created_at"], autosummarize=True, name="image_created"),
            # Those of the images' page: the first images of a data set, or of all from the newest
            # on, whatever their number, and the few of a folder, a taxon's text, a custom field's
            # value or some days.
            models.Index(fields=["dataset", "id"], name="image_dataset"),
            models.Index(fields=["created_at", "id"], name="image_newest"),
            models.Index(
                fields=["folder"],
                opclasses=["varchar_pattern_ops"],
                condition=~models.Q(folder=""),
                name="image_folder",
            ),
            GinIndex(
                fields=["taxon_text"],
                opclasses=["gin_trgm_ops"],
                condition=~models.Q(taxon_text=""),
                name="image_taxon_text",
            ),
            GinIndex(
                fields=["custom_fields"], opclasses=["jsonb_path_ops"], name="image_custom_fields"
            ),
            models.Index(fields=["observed_at"], name="image_observed"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.file_name}"

    @property
    def version(self) -> str:
        """8 hexadecimal digits that change when the content is known to have changed."""
        if self.sha256:
            return self.sha256[:8]
        location = f"{self.root_id}\0{self.file_name}\0{self.size_bytes}"
        return hashlib.sha256(location.encode()).hexdigest()[:8]

    @property
    def license_words(self) -> str:
        """The source's text of the license where it says something else than `license` and
        `license_url` do; else empty.
        """
        known = (self.license, self.license_url)
        return "" if self.license_text in known else self.license_text

    @property
    def url(self) -> str:
        """Address of the image for display, upright RGB; changes with the version. Signed."""
        return signed(f"/images/{self.id}/{self.version}.jpg")

    @property
    def thumbnail_url(self) -> str:
        """Address of the thumbnail; changes with the version. Signed."""
        return signed(f"/images/{self.id}/{self.version}-thumb.jpg")


class CustomField(models.Model):
    """A column of a table of images that no field of `Image` stands for, and that was kept.

    It may hold the label that is to be judged blind: nobody but reviewers and admins sees it before
    an admin shows it.
    """

    class Kind(models.TextChoices):
        """The kinds of values."""

        NUMBER = "number", "Number"
        DATE = "date", "Date"
        TEXT = "text", "Text"
        YES_NO = "yes_no", "Yes or no"

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    shown_to_annotators = models.BooleanField(default=False)
    in_releases = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="custom_field_named"),
        ]

    def __str__(self) -> str:
        return self.name


class DatasetMark(models.Model):
    """What an admin has said of all images of a data set, which also holds for later imports."""

    dataset = models.CharField(max_length=100, unique=True)
    license_unknown = models.BooleanField(
        default=False, help_text="nobody may rely on the license that was read earlier"
    )
    locations_obscured = models.BooleanField(
        default=False, help_text="the source may have blurred the locations"
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["dataset"]

    def __str__(self) -> str:
        return self.dataset


class CorpusCount(models.Model):
    """The number of images, including withdrawn ones: one row, or none while there is no image.

    Only triggers on the table of images write it, once per statement.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    images = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="corpus_count_one")]

    def __str__(self) -> str:
        return f"{self.images} images"


class SpeciesCount(models.Model):
    """The number of a species' images, including withdrawn ones; no row means none.

    Triggers write it, as `CorpusCount`, which exceeds the sum by the images of unknown species.
    """

    species = models.OneToOneField(
        Species, on_delete=models.CASCADE, primary_key=True, related_name="counted"
    )
    images = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.species_id}: {self.images} images"


class ImageWithdrawal(models.Model):
    """An interval in which an image is withdrawn: left out of search, new lists and releases.

    The intervals allow a candidate list frozen at some moment to be computed again.
    """

    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="withdrawals")
    note = models.CharField(max_length=1000, blank=True)
    withdrawn_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    withdrawn_at = models.DateTimeField()
    restored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    restored_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["image"],
                condition=models.Q(restored_at__isnull=True),
                name="image_withdrawn_once",
            ),
            models.CheckConstraint(
                condition=models.Q(restored_at__isnull=True)
                | models.Q(restored_at__gte=models.F("withdrawn_at")),
                name="image_withdrawal_in_order",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.image_id} from {self.withdrawn_at} to {self.restored_at or 'now'}"


class ImageTakedown(models.Model):
    """An image that was removed for good; it stays withdrawn, and its row remains without file,
    place, time and rights holder, so that ids and frozen lists keep their meaning.
    """

    image = models.OneToOneField(
        Image, on_delete=models.CASCADE, primary_key=True, related_name="takedown"
    )
    sha256 = models.CharField(
        max_length=64, blank=True, help_text="of the removed file, which no import brings back"
    )
    reason = models.CharField(max_length=1000)
    taken_down_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    taken_down_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["taken_down_at"]
        indexes = [
            models.Index(fields=["sha256"], condition=~models.Q(sha256=""), name="takedown_sha256")
        ]

    def __str__(self) -> str:
        return f"{self.image_id}: {self.reason}"
