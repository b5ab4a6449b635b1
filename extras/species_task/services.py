"""Running the species task: each image is named by the species' text that it is nearest to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from django.db import transaction

from core import storage
from core.csv_rows import RowError, csv_rows
from core.errors import FileRefused, Invalid
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create
from extras.species_task.measures import Floats, Ids, Truth, bin_of, grouped, true_rank
from extras.species_task.models import SpeciesRun
from retrieval.corpus.models import ImageWithdrawal, Species
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.text_vectors import text_vectors

KIND: Final = "species_task"
_IMAGES: Final = 2000
_TEXTS: Final = 100
_RANKS: Final = ("kingdom", "phylum", "class_name", "order", "family", "genus")


class SpeciesCounts(NamedTuple):
    """The s species of a run, and how their images were named."""

    species: list[Species]
    counts: Ids
    """(s, 3): images, those named rightly, and those by one of the five nearest."""
    training: Floats
    """(s,) images that the model was trained on; NaN where unknown."""


@transaction.atomic
def species_run_begin(
    *,
    model: EmbeddingModel,
    scope: str,
    naming: str,
    language: str = "en",
    prompt: str = "a photo of {}.",
    training_images: Mapping[str, int] | None = None,
    created_by: Any = None,
) -> SpeciesRun:
    """Have a model name the corpus' images, by a job; the same run once more is computed anew.

    `training_images`, by scientific name, take the place of those that the run has. Raises
    Invalid for a prompt that doesn't hold {} once.
    """
    if prompt.count("{}") != 1 or len(prompt) > 200 or not prompt.isprintable():
        raise Invalid({"prompt": ["Write {} once, where the name stands."]})
    if naming in (SpeciesRun.Naming.SCIENTIFIC, SpeciesRun.Naming.TAXONOMIC):
        language = "en"
    run, _ = SpeciesRun.objects.select_for_update().get_or_create(
        embedding_model=model,
        scope=scope,
        naming=naming,
        language=language,
        prompt=prompt,
        defaults={"created_by": created_by},
    )
    if run.job is None or run.job.state not in Job.UNFINISHED:
        run.job = job_create(
            kind=KIND, params={"run": run.pk}, created_by=created_by, title=f"Species task: {run}"
        )
    if training_images is not None:
        names = Species.objects.filter(images__isnull=False).values_list("scientific_name")
        known = {name for (name,) in names.distinct()} & training_images.keys()
        run.training_images = {name: training_images[name] for name in sorted(known)}
    run.save(update_fields=["job", "training_images"])
    return run


def training_images_read(lines: Iterable[bytes], *, name: str) -> dict[str, int]:
    """How many images of a species a model was trained on, of a CSV of `scientific_name` and
    `images`. FileRefused: the file can't be read.
    """
    errors: list[RowError] = []
    found: dict[str, int] = {}
    columns = ("scientific_name", "images")
    for line, row in csv_rows(lines, name=name, required=columns, errors=errors, others=True):
        species, text = (row[column].strip() for column in columns)
        if not text.isdecimal() or found.setdefault(species, int(text)) != int(text):
            message = "a whole number is needed, and one for each species"
            errors.append(RowError(name, line, "images", message))
    if errors:
        raise FileRefused(errors)
    return found


def species_step(job: Job, deadline: float) -> bool:
    """Compute a run in one slice. JobFailed: no image of a known species has an embedding."""
    run = SpeciesRun.objects.select_related("embedding_model").get(pk=job.params["run"])
    texts = species_texts(run)
    species_ids = list(texts)
    vectors = np.zeros((len(texts), run.embedding_model.dimension), np.float32)
    for start in range(0, len(texts), _TEXTS):
        some = [texts[pk] for pk in species_ids[start : start + _TEXTS]]
        vectors[start : start + len(some)] = text_vectors(run.embedding_model, some)
    by_group = run.scope == SpeciesRun.Scope.GROUP
    groups = _groups(species_ids) if by_group else {pk: [] for pk in species_ids}
    place = {pk: at for at, pk in enumerate(species_ids)}
    image_ids: list[Ids] = []
    correct: list[Truth] = []
    # Images, those right, and those right among the five nearest.
    by_set: defaultdict[str, Ids] = defaultdict(lambda: np.zeros(3, np.int64))
    by_species: defaultdict[int, Ids] = defaultdict(lambda: np.zeros(3, np.int64))
    known: defaultdict[str, set[int]] = defaultdict(set)
    left_out = 0
    for ids, embedded, truth, names in _images(run.embedding_model):
        asked = np.isin(truth, list(groups))
        left_out += int((~asked).sum())
        job_advance(job=job, done=len(ids))
        if not asked.any():
            continue
        kinds = truth[asked].tolist()
        allowed = np.zeros((len(kinds), len(species_ids)), bool) if by_group else None
        if allowed is not None:
            for row, species_id in enumerate(kinds):
                allowed[row, groups[species_id]] = True
        true = np.array([place[species_id] for species_id in kinds])
        ranks = true_rank(embedded[asked], vectors, true, allowed)
        image_ids.append(ids[asked])
        correct.append(ranks == 0)
        for name, species_id, rank in zip(names[asked], kinds, ranks.tolist(), strict=True):
            one = (1, rank == 0, rank < 5)
            by_set[name] += one
            by_species[species_id] += one
            known[name].add(species_id)
    if not image_ids:
        raise JobFailed("No image of a species that can be named has an embedding of this model.")
    with storage.writing(run.path) as file:
        np.savez_compressed(
            file,
            image_ids=np.concatenate(image_ids),
            correct=np.concatenate(correct),
            species_ids=np.array(list(by_species), np.int64),
            counts=np.array(list(by_species.values())),
        )
    run.images, run.correct, run.correct_5 = np.sum(list(by_set.values()), axis=0).tolist()
    run.species, run.left_out = len(groups), left_out
    run.sets = [[name, len(known[name]), *by_set[name].tolist()] for name in sorted(by_set)]
    run.save(update_fields=["species", "images", "correct", "correct_5", "left_out", "sets"])
    return True


def species_texts(run: SpeciesRun) -> dict[int, str]:
    """The prompt of each species that has images and such a name, by primary key."""
    texts = {}
    species = Species.objects.filter(images__isnull=False).distinct().order_by("pk")
    for kind in species.prefetch_related("names"):
        common = next((n.name for n in kind.names.all() if n.language == run.language), "")
        ranks = [getattr(kind, rank) for rank in _RANKS]
        name = {
            "sci": kind.scientific_name,
            "com": common,
            "taxon": " ".join(filter(None, [*ranks, kind.specific_epithet])),
            "sci_com": common and f"{kind.scientific_name} with common name {common}",
        }[run.naming]
        if name:
            texts[kind.pk] = run.prompt.replace("{}", name)
    return texts


def answers(run: SpeciesRun) -> tuple[Ids, Truth]:
    """The ids of the images that a run named, ascending, and whether each was right."""
    with np.load(storage.local_file(run.path)) as arrays:
        return arrays["image_ids"], arrays["correct"]


def species_counts(run: SpeciesRun) -> SpeciesCounts:
    """A run's species by scientific name, with the lineage that they have now."""
    with np.load(storage.local_file(run.path)) as arrays:
        place = {pk: at for at, pk in enumerate(arrays["species_ids"].tolist())}
        counts = arrays["counts"]
    species = list(Species.objects.filter(pk__in=place).order_by("scientific_name"))
    known = [run.training_images.get(one.scientific_name, np.nan) for one in species]
    counts = counts[[place[one.pk] for one in species]]
    return SpeciesCounts(species, counts, np.array(known, np.float64))


def groups_of(counted: SpeciesCounts, by: str) -> list[dict[str, Any]]:
    """Figures of species by a field of Species, the largest groups first; by "training_images" of
    those for which it is known, ascending.
    """
    species, counts, training = counted
    if by == "training_images":
        order = np.argsort(training, kind="stable")[: np.isfinite(training).sum()]
        return grouped([bin_of(n) for n in training[order]], counts[order], training[order])
    groups = grouped([getattr(one, by) for one in species], counts, training)
    return sorted(groups, key=lambda group: (-group["species"], group["name"]))


def _groups(species_ids: list[int]) -> dict[int, list[int]]:
    """The places in `species_ids` of each species' look-alike group; none for a species alone."""
    place = {pk: at for at, pk in enumerate(species_ids)}
    groups: defaultdict[str, list[int]] = defaultdict(list)
    rows = Species.objects.filter(pk__in=species_ids).exclude(lookalike_group="")
    for pk, group in rows.order_by("pk").values_list("pk", "lookalike_group"):
        groups[group].append(pk)
    return {
        pk: [place[member] for member in members]
        for members in groups.values()
        if len(members) > 1
        for pk in members
    }


def _images(model: EmbeddingModel) -> Iterator[tuple[Ids, Any, Ids, Any]]:
    """(ids, vectors, species, data sets) of embedded images of known species that aren't withdrawn,
    some thousand at a time, by id.
    """
    withdrawn = ImageWithdrawal.objects.filter(restored_at=None).values("image")
    rows = (
        Embedding.objects.filter(model=model, image__species__isnull=False)
        .exclude(image__in=withdrawn)
        .order_by("image_id")
        .values_list("image_id", "vector", "image__species", "image__dataset")
        .iterator(_IMAGES)
    )
    while some := list(islice(rows, _IMAGES)):
        ids, vectors, species, datasets = zip(*some, strict=True)
        yield (
            np.array(ids, np.int64),
            np.array([np.asarray(vector, np.float32) for vector in vectors]),
            np.array(species, np.int64),
            np.array(datasets, object),
        )
