"""Creating releases: rows, versions, and the jobs that make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from benchmark.releases import selectors
from benchmark.releases.models import Release
from core.jobs.models import Job
from core.jobs.services import job_create, job_retry
from retrieval.embedding.model_selectors import has_embeddings
from retrieval.embedding.models import EmbeddingModel

JOB_KIND = "export_release"


@transaction.atomic
def release_create(
    *, name: str, created_by: Any, options: Mapping[str, Any] | None = None
) -> Release:
    """Begin the next version of a name: the row, and the job that makes it.

    `options`: rerank_model, the name of the model whose top 100 are the fixed lists, "" for none
    (without it: settings.EMBEDDING_MODEL if any image is embedded under it); include_images,
    whether the Hugging Face folder holds the images' bytes; test_labels, "hidden" (without it) or
    "public". A version whose making failed or was
    cut short is continued, with these options. Raises ValidationError, with the field named,
    for a name that is blank, too long or holds control characters, that ends like a version or is a
    number, that is of an imported benchmark or of which a version is being made, and for an unknown
    model.
    """
    release = release_claim(name=name, created_by=created_by, options=options)
    _job_begin(release, created_by)
    return release


@transaction.atomic
def release_retry(*, release: Release, by: Any) -> Release:
    """Continue a release whose making failed or was cut short, with its own options.

    Raises ValidationError if it is made, or being made.
    """
    locked = Release.objects.select_for_update(of=("self",)).get(pk=release.pk)
    _refuse_unless_left_over(locked)
    if locked.origin != Release.Origin.MADE:
        raise ValidationError("An imported benchmark is imported again, from its files.")
    _job_begin(locked, by)
    return locked


@transaction.atomic
def release_claim(
    *,
    name: str,
    created_by: Any,
    options: Mapping[str, Any] | None = None,
    origin: str = Release.Origin.MADE,
) -> Release:
    """The row of the next version of a name, new or left over from a failure, without a job.

    Arguments and refusals as of `release_create`; all versions of a name are of one origin.
    """
    name = name.strip()
    if not name.isprintable():
        raise ValidationError({"name": "The name holds characters that can't be printed."})
    chosen = _options(options or {})
    test_labels = (options or {}).get("test_labels") or Release.TestLabels.HIDDEN
    versions = Release.objects.select_for_update(of=("self",)).filter(name=name)
    latest = versions.order_by("-version").first()
    if latest is None and (selectors.VERSIONED.fullmatch(name) or name.isdecimal()):
        message = f"{name!r} would name a release by its version or number; choose another name."
        raise ValidationError({"name": message})
    if latest is not None and latest.origin != origin:
        kind = "made here" if origin == Release.Origin.IMPORTED else "an imported benchmark"
        message = f"{name!r} is {kind}; choose another name."
        raise ValidationError({"name": message})
    if latest is not None and not latest.files_ready:
        _refuse_unless_left_over(latest)
        latest.options = chosen
        latest.test_labels = test_labels
        latest.previous = selectors.release_find(name=latest.name)
        latest.save(update_fields=["options", "test_labels", "previous"])
        return latest
    version = latest.version + 1 if latest else 1
    release = Release(
        name=name,
        version=version,
        origin=origin,
        test_labels=test_labels,
        previous=latest,
        created_by=created_by,
        options=chosen,
    )
    return _insert(release)


def _insert(release: Release) -> Release:
    release.full_clean(validate_unique=False, validate_constraints=False)
    try:
        with transaction.atomic():
            release.save()
    except IntegrityError:
        # Another request took the name at this moment.
        raise _being_made(release) from None
    return release


def _refuse_unless_left_over(release: Release) -> None:
    if release.files_ready:
        raise ValidationError(f"{release} is made and never changes.")
    if release.state in Job.UNFINISHED:
        raise _being_made(release)


def _being_made(release: Release) -> ValidationError:
    message = f"Version {release.version} of {release.name!r} is already being made."
    return ValidationError({"name": message})


def _job_begin(release: Release, by: Any) -> None:
    if release.job is None or not job_retry(job=release.job):
        release.job = job_create(
            kind=JOB_KIND,
            params={"release": release.pk},
            created_by=by,
            title=f"Release {release}",
        )
        release.save(update_fields=["job"])


def _options(requested: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are kept, with what was left open decided."""
    name = requested.get("rerank_model")
    if name is None:
        model = EmbeddingModel.objects.filter(name=settings.EMBEDDING_MODEL).first()
        name = model.name if model is not None and has_embeddings(model) else ""
    elif name and not EmbeddingModel.objects.filter(name=name).exists():
        known = ", ".join(EmbeddingModel.objects.order_by("name").values_list("name", flat=True))
        message = f"No image is embedded with {name!r}; known models: {known or 'none'}."
        raise ValidationError({"rerank_model": message})
    return {"rerank_model": name, "include_images": bool(requested.get("include_images", False))}
