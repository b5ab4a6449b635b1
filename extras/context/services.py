"""Training the built-in location encoder, and storing the embeddings of a context model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.db import transaction

from core.errors import Conflict
from core.geo_grid import CELL
from core.locks import transaction_lock
from extras.context.encoders import load_context
from extras.context.environment import Environment, environment_read
from extras.context.harmonics import DEGREE, Fitting, Floats, Seen, chosen, combined
from extras.context.model_folder import CONTEXT_NAME, context_config
from retrieval.corpus.models import Image, Species
from retrieval.embedding.embedding_models import (
    embedding_model_get_or_create,
    embedding_model_lock,
)
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.selectors import embedding_count, embeddings_after, embeddings_of
from retrieval.embedding.store import embeddings_copy, embeddings_stored
from retrieval.embedding.text_vectors import text_vectors
from retrieval.encoding.model_specs import base_of
from retrieval.encoding.unit_rows import unit_rows
from retrieval.flags.selectors import images_in_corpus

AT_A_TIME: Final = 4096
TEXTS_AT_A_TIME: Final = 256
#: Held-out images of each kind on which an encoder is measured, drawn at random.
MOST_MEASURED: Final = 20_000
ENCODER_FILE: Final = "harmonics.npz"

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Image ids (n,), places (n, 2 + c), months (n,), numbers of species (n,)."""
Progress = Callable[[int, int], None] | None


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What came of a training."""

    images: int
    """It learned from."""
    species: int
    weight: float
    """Of the context, that names most images of held-out observers rightly."""
    measured: dict[str, tuple[int, ...]]
    """By held-out "observers" and "places": images, and of how many the species is named rightly by
    the image alone, with its context, and by the context alone."""


def context_train(
    *,
    base: EmbeddingModel,
    directory: Path,
    held_out: float = 0.2,
    degree: int = DEGREE,
    environment: Environment | None = None,
    progress: Progress = None,
) -> ContextReport:
    """Fit the built-in encoder to the species, places and months of the corpus, and write a context
    model's folder.

    Left out of the fit are the images of a share `held_out` of the observers, by which the penalty
    and the context's weight are chosen, and those in a share of the cells of CELL degrees, on which
    it is measured alone. An image's species is the one of all whose text is nearest. Raises
    Conflict where there are no places of two species, no held-out images with embeddings, or
    something is in the folder.
    """
    if directory.exists() and any(directory.iterdir()):
        raise Conflict(f"There is something in {directory}.")
    species = list(
        Species.objects.filter(images__latitude__isnull=False)
        .distinct()
        .order_by("pk")
        .prefetch_related("names")
    )
    if len(species) < 2:
        raise Conflict("Images of at least two species whose places are known are needed.")
    texts = _texts(base, species, progress)
    number = {kind.pk: index for index, kind in enumerate(species)}
    fitting = Fitting(len(species), degree, environment.values.shape[1] if environment else 0)
    drawn: dict[str, _Drawn] = {"observers": _Drawn(), "places": _Drawn()}
    for rows, kinds in _parted(number, held_out, environment):
        fitting.add(*_of(rows, kinds == ""))
        for kind, sample in drawn.items():
            sample.take(*_only(rows, kinds == kind))
    for rows, kinds in _parted(number, held_out, environment):
        if (kinds == "").any():
            fitting.add_squares(*_of(rows, kinds == ""))
    held = {kind: sample.with_vectors(base) for kind, sample in drawn.items()}
    if not all(len(seen.species) for seen in held.values()) or not fitting.counts.any():
        raise Conflict("Too few observers and places are known: nothing would be held out.")
    encoder, weight = chosen(fitting, texts, held["observers"])
    measured = {
        kind: (
            len(seen.species),
            *(seen.right(encoder, texts, share) for share in (0.0, weight, 1.0)),
        )
        for kind, seen in held.items()
    }
    directory.mkdir(parents=True, exist_ok=True)
    encoder.save(directory / ENCODER_FILE)
    config = {"base": base.name, "weight": weight, "encoder": ENCODER_FILE}
    if environment:
        config["environment"] = environment.about
    (directory / CONTEXT_NAME).write_text(json.dumps(config | {"measured": measured}, indent=2))
    images = int(fitting.counts.sum())
    return ContextReport(images, len(species), weight, measured)


def context_add(
    *, spec: str, table: Path | None = None, created_by: Any = None, progress: Progress = None
) -> int:
    """Store the embeddings of a context model for every image that its base has embedded; returns
    how many were new. Again after an import it adds what is missing.

    Raises ModelSpecError for a folder that isn't a context model's, Conflict where the base has
    embedded nothing, or a table isn't given just where the model was trained with one; what
    `environment_read` raises of it.
    """
    encoder = load_context(spec)
    weight, about = encoder.weight, (context_config(spec) or {}).get("environment")
    if about and not table:
        columns = ", ".join(about["columns"])
        raise Conflict(f"This model needs a table of {columns}: name it by --environment.")
    if table and not about:
        raise Conflict("This model was trained without a table of the environment.")
    environment = environment_read(table, about) if table and about else None
    base = EmbeddingModel.objects.filter(name=base_of(spec)).first()
    if base is None or not (count := embedding_count(base, withdrawn=True)):
        raise Conflict(f"{base_of(spec)} has embedded no image yet.")
    model = embedding_model_get_or_create(name=spec, dimension=base.dimension)
    after, stored, done = -1, 0, 0
    while True:
        ids, vectors = embeddings_after(base, after, limit=AT_A_TIME, withdrawn=True)
        if not len(ids):
            break
        context = encoder(*_places_of(ids, environment))
        halves = unit_rows(combined(vectors.astype(np.float32), context, weight), scale=True)
        with transaction.atomic():
            transaction_lock(embedding_model_lock(model), shared=True)
            stored += embeddings_copy(model=model, image_ids=ids, vectors=halves.vectors)
        after, done = int(ids[-1]), done + len(ids)
        if progress:
            progress(done, count)
    embeddings_stored.send(sender=None, model=model, created_by=created_by)
    return stored


class _Drawn:
    """Images drawn at random out of a stream of them."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.seen = 0
        self.random = np.random.default_rng(0)

    def take(self, ids: Any, places: Any, months: Any, species: Any) -> None:
        for row in zip(ids.tolist(), places.tolist(), months.tolist(), species.tolist(),
                       strict=True):  # fmt: skip
            self.seen += 1
            if len(self.rows) < MOST_MEASURED:
                self.rows.append(row)
            elif (place := int(self.random.integers(self.seen))) < MOST_MEASURED:
                self.rows[place] = row

    def with_vectors(self, base: EmbeddingModel) -> Seen:
        """Those that the base has embedded, by id."""
        self.rows.sort()
        ids, vectors = embeddings_of(base, [row[0] for row in self.rows])
        there = set(ids.tolist())
        _, places, months, species = _rows([row for row in self.rows if row[0] in there])
        return Seen(places, months, species, vectors.astype(np.float32))


def _rows(rows: list[tuple[Any, ...]]) -> Rows:
    ids, places, months, species = zip(*rows, strict=True) if rows else ((), (), (), ())
    return (
        np.array(ids, np.int64),
        np.array(places, np.float64).reshape(len(ids), len(places[0]) if places else 2),
        np.array(months, np.int64),
        np.array(species, np.int64),
    )


def _only(rows: Rows, mask: np.ndarray) -> Rows:
    return tuple(column[mask] for column in rows)


def _of(rows: Rows, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    _, places, months, species = _only(rows, mask)
    return places, months, species


def _parted(
    number: dict[int, int], held_out: float, environment: Environment | None
) -> Iterator[tuple[Rows, np.ndarray]]:
    """Images of known species and place by id, each with "observers" or "places" if it is held out,
    or "".
    """
    images = (
        images_in_corpus()
        .filter(latitude__isnull=False, longitude__isnull=False, species__in=number)
        .order_by("pk")
        .values_list("pk", "latitude", "longitude", "observed_at", "species", "observer")
        .iterator(AT_A_TIME)
    )
    while some := list(islice(images, AT_A_TIME)):
        rows, kinds = [], []
        for pk, latitude, longitude, moment, species, observer in some:
            month = moment.month if moment else 0
            rows.append((pk, (latitude, longitude), month, number[species]))
            cell = f"{(latitude or 0) // CELL} {(longitude or 0) // CELL}"
            if _share(f"cell {cell}") < held_out:
                kinds.append("places")
            else:
                out = observer and _share(f"observer {observer}") < held_out
                kinds.append("observers" if out else "")
        ids, places, months, numbers = _rows(rows)
        places = environment.beside(ids, places) if environment else places
        yield (ids, places, months, numbers), np.array(kinds)


def _share(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2.0**64


def _texts(base: EmbeddingModel, species: list[Species], progress: Progress) -> Floats:
    texts = []
    for taxon in species:
        common = f" with common name {taxon.common_name}" if taxon.common_name else ""
        texts.append(f"a photo of {taxon.scientific_name}{common}.")
    vectors = []
    for start in range(0, len(texts), TEXTS_AT_A_TIME):
        vectors += text_vectors(base, texts[start : start + TEXTS_AT_A_TIME])
        if progress:
            progress(len(vectors), len(texts))
    return np.array(vectors, np.float32)


def _places_of(ids: np.ndarray, environment: Environment | None) -> tuple[np.ndarray, np.ndarray]:
    """Places (n, 2 + c), NaN where unknown, and months (n,), 0 where unknown, of images (n,)."""
    columns = ("pk", "latitude", "longitude", "observed_at")
    images = Image.objects.filter(pk__in=ids.tolist()).values_list(*columns)
    known = {pk: about for pk, *about in images}
    places = np.full((len(ids), 2), np.nan)
    months = np.zeros(len(ids), np.int64)
    for at, pk in enumerate(ids.tolist()):
        latitude, longitude, moment = known.get(pk, (None, None, None))
        if latitude is not None and longitude is not None:
            places[at] = latitude, longitude
        if moment is not None:
            months[at] = moment.month
    return environment.beside(ids, places) if environment else places, months
