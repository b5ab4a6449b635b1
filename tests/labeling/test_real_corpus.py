"""Real photos, INQUIRE's queries and the demo model: one species labeled to its last image."""

from __future__ import annotations

import uuid

import pytest
from django.core.management import call_command

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from labeling.candidates.selectors import list_verify
from labeling.judging.models import Judgment
from labeling.judging.progress import progress
from labeling.judging.services import JudgmentInput, judgments_record
from labeling.lifecycle.services import query_transition, query_update
from labeling.queries.models import Query
from retrieval.corpus.models import Image, Species
from retrieval.embedding.services import embedding_job_create
from retrieval.importing.services import import_images


def work_off() -> None:
    """Do every job to its end, as a worker would."""
    while job := Job.objects.filter(state__in=Job.UNFINISHED).order_by("pk").first():
        job_slice_run(job_id=job.pk)
    assert not Job.objects.exclude(state=Job.State.DONE).exists()


@pytest.mark.django_db
def test_a_filtered_query_is_labeled_to_exhaustion(shared_dir, demo_encoder, admin, annotator):
    report = import_images(path=shared_dir / "photos" / "train.json")
    assert report.added == Image.objects.count() == 127
    embedding_job_create(created_by=admin)
    work_off()
    files = [shared_dir / "inquire" / f"inquire_queries_{split}.csv" for split in ("val", "test")]
    call_command("import_queries", *map(str, files))
    assert Query.objects.count() == 250

    filtered = list(Species.objects.filter(images__isnull=False).distinct()[:3])
    query = Query.objects.order_by("query_id")[0]
    query_update(query=query, by=admin, species=filtered)
    query_transition(query=query, to_state="open", by=admin)
    work_off()
    query.refresh_from_db()
    frozen = query.current_list
    assert frozen is not None
    expected = Image.objects.filter(species__in=filtered).values_list("pk", flat=True)
    assert set(frozen.candidates.values_list("image_id", flat=True)) == set(expected)
    assert list_verify(frozen)

    for candidate in frozen.candidates.order_by("rank"):
        assert not progress(query, annotator=annotator).stop.met
        [outcome] = judgments_record(
            query=query,
            annotator=annotator,
            items=[
                JudgmentInput(
                    image_id=candidate.image_id,
                    relevance="relevant" if candidate.rank == 1 else "not_relevant",
                    client_id=uuid.uuid4(),
                )
            ],
        ).outcomes
        assert (outcome.status, outcome.rank) == ("stored", candidate.rank)
    own = progress(query, annotator=annotator)
    assert (own.stop.rule, own.stop.remaining, own.stop.relevant) == ("exhausted", 0, 1)
    query_transition(query=query, to_state="submitted", by=annotator)
    query = query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    assert query.state == "complete"
    assert Judgment.objects.count() == frozen.size == len(expected)
