"""Running the species task: each image is named by the species' text that it is nearest to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
from django.db import transaction

from core import storage
from core.errors import Invalid
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create
from extras.species_task.measures import Ids, Truth, best_named
from extras.species_task.models import SpeciesRun
from retrieval.corpus.models import ImageWithdrawal, Species
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.embedding.text_vectors import text_vectors

KIND: Final = "species_task"
_IMAGES: Final = 2000
_TEXTS: Final = 100
_RANKS: Final = ("kingdom", "phylum", "class_name", "order", "family", "genus")


@transaction.atomic
def species_run_begin(
    *,
    model: EmbeddingModel,
    scope: str,
    naming: str,
    language: str = "en",
    prompt: str = "a photo of {}.",
    created_by: Any = None,
) -> SpeciesRun:
    """Have a model name the corpus' images, by a job; the same run once more is computed anew.

    Raises Invalid for a prompt that doesn't hold {} once.
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
        run.save(update_fields=["job"])
    return run


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
    image_ids: list[Ids] = []
    correct: list[Truth] = []
    seen: Counter[str] = Counter()
    right: Counter[str] = Counter()
    known: defaultdict[str, set[int]] = defaultdict(set)
    left_out = 0
    for ids, embedded, truth, names in _images(run.embedding_model):
        asked = np.isin(truth, list(groups))
        allowed = np.zeros((len(ids), len(species_ids)), bool) if by_group else None
        if allowed is not None:
            for row, species_id in enumerate(truth.tolist()):
                allowed[row, groups.get(species_id, [])] = True
        left_out += int((~asked).sum())
        job_advance(job=job, done=len(ids))
        if not asked.any():
            continue
        among = None if allowed is None else allowed[asked]
        best = best_named(embedded[asked], vectors, among)
        hit = np.array([species_ids[at] for at in best]) == truth[asked]
        image_ids.append(ids[asked])
        correct.append(hit)
        for name, is_right, species_id in zip(
            names[asked], hit, truth[asked].tolist(), strict=True
        ):
            seen[name] += 1
            right[name] += bool(is_right)
            known[name].add(species_id)
    if not image_ids:
        raise JobFailed("No image of a species that can be named has an embedding of this model.")
    whole_ids, whole_hits = np.concatenate(image_ids), np.concatenate(correct)
    with storage.writing(run.path) as file:
        np.savez_compressed(file, image_ids=whole_ids, correct=whole_hits)
    run.species, run.images, run.correct = len(groups), len(whole_ids), int(whole_hits.sum())
    run.left_out = left_out
    run.sets = [[name, len(known[name]), seen[name], right[name]] for name in sorted(seen)]
    run.save(update_fields=["species", "images", "correct", "left_out", "sets"])
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
