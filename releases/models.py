"""Releases: what was exported, when, and the files' checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.text import slugify

from core import storage
from core.jobs.models import Job
from core.locks import is_locked, lock_key
from labeling.queries.models import Benchmark, default_benchmark
from releases.snapshot.release_files import SNAPSHOT_FOLDER


class ReleaseQuerySet(models.QuerySet["Release"]):
    """Releases."""

    def made(self) -> ReleaseQuerySet:
        """The releases that are made, and so never change."""
        return self.filter(made_at__isnull=False)


class Release(models.Model):
    """A version of a benchmark: a snapshot of queries and consensus judgments, in files under
    VAR_DIR/releases/<id>/.

    Once `made_at` is set, a trigger of the database refuses every change of the row but two: a
    takedown is added, and with it the checksums of the files that lost images or a name; and the
    board is closed, once.
    """

    class Origin(models.TextChoices):
        """Where its labels come from."""

        MADE = "made", "Made here"
        IMPORTED = "imported", "Imported"

    class TestLabels(models.TextChoices):
        """Who sees which images are relevant to the queries of the test split."""

        HIDDEN = "hidden", "Hidden: reviewers and admins alone"
        PUBLIC = "public", "Public: researchers too"

    name = models.CharField(max_length=100, help_text="the benchmark's name")
    benchmark = models.ForeignKey(
        Benchmark,
        on_delete=models.PROTECT,
        related_name="releases",
        default=default_benchmark,
        help_text="whose queries it holds; all versions of a name are of one",
    )
    version = models.PositiveIntegerField(default=1, help_text="from 1, counted within the name")
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.MADE)
    test_labels = models.CharField(max_length=10, choices=TestLabels, default=TestLabels.HIDDEN)
    halves_secret = models.CharField(
        default="",
        db_default="",
        max_length=64,
        blank=True,
        help_text="32 random bytes that fix the public half of the test split; empty: not divided",
    )
    board_closed_at = models.DateTimeField(
        null=True, blank=True, help_text="empty while runs with test queries are taken"
    )
    previous = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="the version before, which `difference` compares with",
    )
    options = models.JSONField(
        default=dict, blank=True, help_text="chosen: rerank_model, include_images"
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="empty where a command made it",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    job = models.OneToOneField(
        Job,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="release",
        help_text="the job that makes it; empty where a command made it",
    )
    made_at = models.DateTimeField(null=True, blank=True, help_text="empty until it is made")
    val_queries = models.PositiveIntegerField(default=0)
    test_queries = models.PositiveIntegerField(default=0)
    positives = models.PositiveBigIntegerField(default=0, help_text="relevant pairs")
    judgments = models.PositiveBigIntegerField(default=0, help_text="single judgments")
    header = models.JSONField(
        default=dict,
        blank=True,
        help_text="the snapshot's header: see releases.snapshot.snapshot",
    )
    difference = models.JSONField(
        default=dict, blank=True, help_text="from the version before; empty for a first version"
    )
    file_list = models.JSONField(
        default=list,
        blank=True,
        help_text="name, size in bytes, SHA-256 and access (open, labels) of each file",
    )
    archive = models.JSONField(
        default=dict, blank=True, help_text="name, size and SHA-256 of the archive of all files"
    )
    takedowns = models.JSONField(
        default=list,
        blank=True,
        help_text="of images that left the files, or of their maker's name: moment, images, "
        "open (those that open files name), software, former SHA-256",
    )

    objects = ReleaseQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["name", "version"], name="release_version_once"),
            models.CheckConstraint(condition=~models.Q(name=""), name="release_name_not_blank"),
            models.CheckConstraint(
                condition=models.Q(version__gte=1), name="release_version_from_1"
            ),
            models.CheckConstraint(
                condition=models.Q(made_at__isnull=True) | ~models.Q(file_list=[]),
                name="release_made_with_files",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    @property
    def slug(self) -> str:
        """The name of its archives and exports, such as "inquire-v2"."""
        return f"{slugify(self.name) or 'release'}-v{self.version}"

    @property
    def labels_hidden(self) -> bool:
        """Whether researchers don't see the labels of its test split."""
        return self.test_labels == self.TestLabels.HIDDEN

    @property
    def has_halves(self) -> bool:
        """Whether its test split has a public and a private half."""
        return bool(self.halves_secret)

    @property
    def files_ready(self) -> bool:
        """Whether it is made."""
        return self.made_at is not None

    def takedowns_shown(self, *, hidden: bool) -> list[dict[str, Any]]:
        """Moment and images of each takedown; where labels are `hidden`, only images that open
        files name, and no takedown of other images alone."""
        shown = []
        for takedown in self.takedowns:
            images = takedown.get("open", []) if hidden else takedown["images"]
            if images or not takedown["images"]:
                shown.append({"moment": takedown["moment"], "images": images})
        return shown

    @property
    def known_judgments(self) -> int | None:
        """How many single judgments there are; None where an imported benchmark has none."""
        return self.judgments or None if self.origin == self.Origin.IMPORTED else self.judgments

    @property
    def state(self) -> str:
        """ "done" once it is made, else the state of its job; without a job "running" while a
        command makes it, and "failed" where nothing works on it."""
        if self.files_ready:
            return Job.State.DONE
        if self.job is None or self.job.state == Job.State.DONE:
            return Job.State.RUNNING if is_locked(self.lock) else Job.State.FAILED
        return self.job.state

    @property
    def lock(self) -> int:
        """The number of the advisory lock that the process that makes it holds."""
        return lock_key("release", self.pk)

    @property
    def directory(self) -> Path:
        """The folder of its files once it is made."""
        return Path(settings.VAR_DIR) / "releases" / str(self.pk)

    @property
    def snapshot_directory(self) -> Path:
        """The folder of its snapshot on this machine; beside it is that of the open snapshot, where
        there is one. Raises StorageAway."""
        directory = self.directory
        if storage.is_shared():
            listed = {entry["name"]: entry["sha256"] for entry in self.file_list}
            # The name of the open snapshot's folder begins with it too.
            tables = {name: listed[name] for name in listed if name.startswith(SNAPSHOT_FOLDER)}
            directory = storage.local_directory(directory, tables)
        return directory / SNAPSHOT_FOLDER
