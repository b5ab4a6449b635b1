"""Two-stage runs by a multimodal model: made, resumed, limited, and what fails is named."""

import time

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict
from core.jobs.models import JobItemError
from core.jobs.services import Slice, job_cancel, job_retry, job_slice_run
from evaluation.reranking.multimodal import client as client_module
from evaluation.reranking.multimodal.answers import store_answers
from evaluation.reranking.multimodal.models import ModelAnswer
from evaluation.reranking.multimodal.prompt import prompt_for, prompt_sha256
from evaluation.reranking.services import rerank_resume
from evaluation.runs.models import RunScores
from evaluation.runs.store import load_run
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from retrieval.images.storage import image_store
from tests.evaluation.chat_server import ChatServer, expected_score, yes_no
from tests.evaluation.rerank_toy import (
    FIRST,
    TEXTS,
    begun,
    bytes_of,
    expected_order,
    first_stage,
    order_of,
    small_release,
    toy_image,
    worked,
)
from tests.processes import free_port
from tests.retrieval.making import jpeg


@pytest.fixture
def server():
    with ChatServer() as started:
        yield started


class Clock:
    """Stands in for the module `time`: its seconds pass where the run sleeps."""

    def __init__(self):
        self.passed = 0.0

    def time(self):
        return 1_000_000.0 + self.passed

    def monotonic(self):
        return time.monotonic() + self.passed

    def sleep(self, seconds):
        self.passed += seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock for slices and pauses."""
    made = Clock()
    monkeypatch.setattr("core.jobs.services.time", made)
    monkeypatch.setattr("evaluation.reranking.asking.time", made)
    return made


@pytest.fixture
def release(db, var_dir, settings):
    settings.MULTIMODAL_MAX_FAILURES = 30
    for number in range(1, 7):
        toy_image(number)
    return small_release()


@pytest.fixture
def first(release):
    return first_stage(release)


def test_a_two_stage_run_from_the_answers_of_a_server(release, first, server):
    run = begun(release, first, 4, server.url)
    job = worked(run)
    assert (job.state, job.error, job.done, job.failed, job.total) == ("done", "", 12, 0, 12)
    assert (run.kind, run.task, run.first_stage, run.rerank_depth) == (
        "rerank_multimodal", "full", first, 4,
    )  # fmt: skip
    assert run.ready
    assert order_of(run) == expected_order(4)
    ranking = load_run(run.path)[2]
    top = [expected_score(prompt_for(TEXTS[2]), bytes_of(one)) for one in ranking.image_ids[:4]]
    assert ranking.scores[:4] == pytest.approx(top, abs=1e-5)
    assert ranking.scores[4:].tolist() == [-2, -3]
    assert {sent.prompt for sent in server.requests} == {
        f'Does this image show {text.strip()}? Answer with "Yes" or "No" and nothing else.'
        for text in TEXTS.values()
    }
    scores = RunScores.objects.get(run=run, release=release)
    assert len(scores.measures["AP@50"]) == 3


def test_what_was_answered_once_is_never_sent_again(release, first, server):
    worked(begun(release, first, 3, server.url))
    assert len(server.requests) == 9
    again = begun(release, first, 3, server.url, name="the same once more")
    assert worked(again).state == "done"
    deeper = begun(release, first, 4, server.url)
    assert worked(deeper).state == "done"
    assert len(server.requests) == 12
    assert order_of(again) == expected_order(3)
    assert again.endpoint["paid"] == {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0}
    assert deeper.endpoint["paid"]["requests"] == 3
    answer = ModelAnswer.objects.get(image_id=6, prompt_sha256=prompt_sha256(prompt_for(TEXTS[2])))
    assert (answer.endpoint, answer.model) == (server.url, "a/model")
    assert (answer.yes, answer.no) == yes_no(prompt_for(TEXTS[2]), bytes_of(6))


def test_another_prompt_is_another_run_and_another_question(release, first, server):
    run = begun(release, first, 2, server.url)
    prompt = "Do you see {query} here? Yes or No."
    other = begun(release, first, 2, server.url, prompt=f"{prompt}\n")
    assert (other.name, other.endpoint["prompt"]) == (run.name, prompt)
    assert other.pk != run.pk
    for made in (run, other):
        assert worked(made).state == "done"
    assert len(server.requests) == 12
    assert {sent.prompt for sent in server.requests[6:]} == {
        f"Do you see {text.strip()} here? Yes or No." for text in TEXTS.values()
    }
    assert ModelAnswer.objects.count() == 12
    again = begun(release, first, 2, server.url, prompt=prompt, name="the same prompt again")
    assert worked(again).state == "done"
    assert len(server.requests) == 12
    assert order_of(again) == order_of(other)


def test_another_image_or_size_is_another_question(release, first, server, settings):
    worked(begun(release, first, 1, server.url))
    new = image_store(jpeg("gold"))
    Image.objects.filter(pk=1).update(sha256=new.sha256)
    run = begun(release, first, 1, server.url, name="with the new picture")
    assert worked(run).state == "done"
    assert [one.jpeg for one in server.requests[3:]] == [bytes_of(1)]
    settings.MULTIMODAL_MAX_SIDE = 32
    run = begun(release, first, 1, server.url, name="smaller")
    assert worked(run).state == "done"
    assert len(server.requests) == 7
    assert ModelAnswer.objects.count() == 3


def test_tokens_and_cost_are_counted(release, first, server):
    run = begun(release, first, 2, server.url, price_in=2.5, price_out=10.0)
    job = worked(run)
    expected = 6 * (800 * 2.5 + 1 * 10) / 1e6
    assert run.cost == pytest.approx(expected, rel=1e-12)
    assert (run.endpoint["prompt_tokens"], run.endpoint["completion_tokens"]) == (4800, 6)
    assert job.result == {
        "requests": 6, "prompt_tokens": 4800, "completion_tokens": 6,
        "cost": pytest.approx(expected),
    }  # fmt: skip
    # The cost is the method's: what was kept from earlier counts as if it were asked now.
    again = begun(release, first, 2, server.url, name="again", price_in=5.0, price_out=20.0)
    worked(again)
    assert again.cost == pytest.approx(2 * expected)
    assert again.endpoint["paid"]["requests"] == 0
    # A server that counts no tokens has no cost, and keeps to no limit.
    server.counts_tokens = False
    limited = begun(release, first, 3, server.url, price_in=2.5, price_out=10.0, max_cost=1.0)
    job = worked(limited)
    assert job.state == "failed"
    assert "doesn't say how many tokens" in job.error


def test_the_cost_limit_is_kept_and_can_be_raised(release, first, server):
    # A question costs 0.00201; five fit into 0.0101.
    run = begun(release, first, 6, server.url, price_in=2.5, price_out=10.0, max_cost=0.0101)
    job = worked(run)
    assert job.state == "failed"
    assert "The cost limit of $0.0101 is reached: $0.01 are spent" in job.error
    assert "5 of 17 images have their answer" in job.error
    assert len(server.requests) == ModelAnswer.objects.count() == 5
    assert not run.ready
    rerank_resume(run=run, max_cost=1.0)
    assert worked(run).state == "done"
    assert len(server.requests) == 17
    assert run.cost == pytest.approx(17 * 0.00201)
    assert run.endpoint["paid"]["requests"] == 17
    assert order_of(run) == expected_order(6)
    with pytest.raises(Conflict, match="Only a two-stage run that stopped"):
        rerank_resume(run=run)


def test_the_same_choice_again_takes_up_a_run_that_stopped(release, first, server):
    server.always = "no_logprobs"
    run = begun(release, first, 2, server.url)
    job = worked(run)
    assert job.state == "failed"
    assert "without log-probabilities" in job.error
    server.always = ""
    again = begun(release, first, 2, server.url, rpm=6000)
    assert (again.pk, again.endpoint["rpm"]) == (run.pk, 6000)
    assert worked(again).state == "done"
    with pytest.raises(ValidationError, match=f"Run {run.pk} is ready with this choice"):
        begun(release, first, 2, server.url)


def test_no_more_requests_at_once_than_allowed(release, first, server, settings):
    settings.MULTIMODAL_CONCURRENCY = 2
    server.delay = 0.05
    server.script.extend(["429", "500", "503"])
    server.retry_after = "0.01"
    # Trouble that passes is waited out.
    job = worked(begun(release, first, 6, server.url))
    assert (job.state, job.done, job.failed, len(server.requests)) == ("done", 17, 0, 20)
    assert server.most_at_once == 2


def test_a_limit_of_requests_holds_over_slices(release, first, server, clock):
    # Twelve seconds apart, and a slice has five.
    run = begun(release, first, 2, server.url, rpm=5)
    assert worked(run).state == "done"
    assert run.job.turn > 10
    assert 59.9 < clock.passed < 61


def test_failed_images_are_named_and_go_behind(release, first, server):
    server.refused.add(bytes_of(4))
    run = begun(release, first, 4, server.url)
    job = worked(run)
    assert (job.state, job.done, job.failed, job.total) == ("done", 9, 3, 12)
    errors = JobItemError.objects.filter(job=job).order_by("pk")
    assert {(error.item, error.image_id) for error in errors} == {
        (f"query {number}, image 4", 4) for number in FIRST
    }
    assert "can't open this picture" in errors[0].message
    without = [(number, 4) for number in FIRST]
    assert order_of(run) == expected_order(4, without)
    assert (run.endpoint["answers"], run.endpoint["unscored"]) == (9, 3)
    # Behind the four, first those that failed, then what lay behind.
    assert load_run(run.path)[1].image_ids[3:].tolist() == [4, 5, 6]


def test_too_many_failures_fail_the_run_until_they_are_mended(release, first, server):
    server.refused.update(bytes_of(number) for number in (1, 2))
    run = begun(release, first, 6, server.url)
    job = worked(run)
    assert job.state == "failed"
    assert "images got no answer; at most 30 % may fail (MULTIMODAL_MAX_FAILURES)" in job.error
    assert JobItemError.objects.filter(job=job).exists()
    server.refused.clear()
    rerank_resume(run=run)
    job = worked(run)
    assert (job.state, job.done, job.failed) == ("done", 17, 0)
    assert not JobItemError.objects.filter(job=job).exists()
    assert order_of(run) == expected_order(6)


def test_a_server_that_is_away_stops_the_run(release, first, server, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_RETRIES", 1)
    run = begun(release, first, 2, f"http://127.0.0.1:{free_port()}/v1")
    job = worked(run)
    assert job.state == "failed"
    assert "can't be reached" in job.error
    assert "Resume the run when the server is up" in job.error
    # It was no image's fault.
    assert job.failed == 0


def test_a_worker_that_dies_costs_a_batch_at_most(release, first, server, monkeypatch):
    batches = []

    def dying(**values):
        if len(batches) == 1:
            raise SystemExit
        batches.append(store_answers(**values))

    run = begun(release, first, 6, server.url)
    with monkeypatch.context() as patch:
        patch.setattr("evaluation.reranking.by_multimodal.store_answers", dying)
        with pytest.raises(SystemExit):
            job_slice_run(job_id=run.job.pk)
    kept, sent = ModelAnswer.objects.count(), len(server.requests)
    # Those under way, and a batch that waits.
    assert 0 < kept < sent <= kept + 12
    assert worked(run).state == "done"
    assert ModelAnswer.objects.count() == 17
    assert len(server.requests) <= 17 + 12
    assert order_of(run) == expected_order(6)


def test_withdrawn_and_missing_images_are_not_sent(release, first, server, reviewer):
    image_withdraw(image=Image.objects.get(pk=1), by=reviewer)
    hidden = bytes_of(1)
    run = begun(release, first, 3, server.url)
    assert worked(run).state == "done"
    assert hidden not in [sent.jpeg for sent in server.requests]
    (error,) = JobItemError.objects.filter(job=run.job)
    assert error.item == "query 1, image 1"
    assert "is withdrawn" in error.message
    assert order_of(run)[1][2:] == [1, 4, 5, 6]


def test_a_cancelled_run_keeps_its_answers_and_goes_on(release, first, server, monkeypatch):
    monkeypatch.setattr("core.jobs.services.SLICE_SECONDS", 0.1)
    server.delay = 0.1
    run = begun(release, first, 6, server.url)
    while ModelAnswer.objects.count() < 3:
        assert job_slice_run(job_id=run.job.pk) is Slice.MORE
    assert job_cancel(job=run.job)
    assert job_slice_run(job_id=run.job.pk) is Slice.STALE
    assert ModelAnswer.objects.count() == len(server.requests) < 17
    assert job_retry(job=run.job)
    assert worked(run).state == "done"
    assert len(server.requests) == 17
