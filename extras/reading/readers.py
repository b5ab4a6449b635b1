"""Readers: making them, what each is asked of a query, and those that are Python entry points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet

from core.jobs.kinds import JobFailed
from evaluation.reranking.multimodal.answers import Prices
from evaluation.reranking.services import checked_setup
from evaluation.reranking.setup import EndpointSetup
from extras.reading import prompt
from extras.reading.models import Reader
from extras.reading.prompt import Example, chosen_examples
from labeling.lifecycle.examples import pinned_examples
from labeling.queries.models import Query

GROUP: Final = "inquire_annotator.readers"

Read = Callable[[str, str, Sequence[Any]], Sequence[float]]
"""Takes a query's text, its guidelines and RGB images (PIL), and returns for each the probability
that it is relevant."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a reader is told of a query."""

    prompt: str
    """Empty for an entry point."""
    examples: list[Example]
    sha256: str


def asked_of(reader: Reader, query: Query) -> Asked:
    """What the reader is told of the query now. Withdrawn examples are left out."""
    guidelines = query.all_guidelines
    examples = []
    if not reader.entry_point:
        pinned = pinned_examples(query)
        examples = chosen_examples(
            [Example(one.image_id, one.relevant, one.note) for one in pinned]
        )
    sha256 = prompt.prompt_sha256(
        query=query.text,
        guidelines=guidelines,
        examples=examples,
        template=reader.prompt,
        max_side=reader.max_side,
    )
    return Asked(prompt.prompt_for(query.text, guidelines, reader.prompt), examples, sha256)


def endpoint_of(reader: Reader, max_cost: float | None) -> EndpointSetup:
    """How the reader's server is asked, by a job that may spend `max_cost` US dollars."""
    return EndpointSetup(
        base_url=reader.base_url,
        model=reader.model,
        prompt=reader.prompt,
        rpm=reader.requests_per_minute,
        prices=Prices(reader.price_in, reader.price_out),
        max_cost=max_cost,
        max_side=reader.max_side,
    )


def reader_create(*, reader: Reader, by: Any) -> Reader:
    """Store a new reader, behind an address or of an installed entry point.

    Raises ValidationError, with the field's name, also where the name is taken.
    """
    reader.max_side, reader.created_by = settings.MULTIMODAL_MAX_SIDE, by
    if bool(reader.entry_point) == bool(reader.base_url):
        raise ValidationError({"endpoint": "Choose a server or a Python entry point."})
    if reader.entry_point:
        if reader.entry_point not in installed_readers():
            raise ValidationError({"entry_point": f"No such reader is installed ({GROUP})."})
        reader.model = reader.prompt = ""
        reader.price_in = reader.price_out = None
    else:
        reader.prompt = reader.prompt or prompt.TEMPLATE
        setup = checked_setup(endpoint_of(reader, None))
        reader.base_url, reader.model, reader.prompt = setup.base_url, setup.model, setup.prompt
    reader.full_clean(exclude=["price_in", "price_out", "created_by"])
    reader.save()
    return reader


def installed_readers() -> dict[str, EntryPoint]:
    """The entry points that are readers, by name."""
    return {one.name: one for one in sorted(entry_points(group=GROUP))}


def installed_reader(name: str) -> Read:
    """The callable behind an entry point; its answers are checked. JobFailed: it isn't installed,
    can't be loaded, or answers what it must not.
    """
    entry_point = installed_readers().get(name)
    if entry_point is None:
        raise JobFailed(f"The reader {name!r} is not installed on this machine ({GROUP}).")

    def read(text: str, guidelines: str, images: Sequence[Any]) -> list[float]:
        try:
            probabilities = np.asarray(entry_point.load()(text, guidelines, images), np.float64)
        except Exception as error:
            raise JobFailed(f"{name}: {type(error).__name__}: {error}") from error
        if probabilities.shape != (len(images),):
            raise JobFailed(
                f"{name} answers {len(images)} images with an array of {probabilities.shape}."
            )
        if not np.all((probabilities >= 0) & (probabilities <= 1)):
            raise JobFailed(f"{name} answers with numbers that are not from 0 to 1.")
        return [float(one) for one in probabilities]

    return read


def readers_counted() -> QuerySet[Reader]:
    """The readers by name, each with how many readings it has (`reading_count`)."""
    return Reader.objects.annotate(reading_count=Count("readings"))
