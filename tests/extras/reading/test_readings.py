"""Readings: made, resumed, limited, and what fails is named."""

import re
import sys

import pytest
from django.core.exceptions import ValidationError

from core.errors import Conflict
from core.jobs.models import Job, JobItemError
from core.jobs.services import Slice, job_cancel, job_retry, job_slice_run
from evaluation.reranking.multimodal import client as client_module
from extras.reading import reading_job
from extras.reading.models import Reader, Reading
from extras.reading.readers import reader_create
from extras.reading.reading_job import queries_to_read, reading_begin, reading_estimate
from labeling.candidates.models import Candidate
from labeling.lifecycle.examples import example_pin
from labeling.lifecycle.services import query_update
from retrieval.flags.services import image_withdraw
from tests.conftest import api_of, client_of
from tests.evaluation.chat_server import ChatServer, expected_probability
from tests.evaluation.rerank_toy import bytes_of, toy_image
from tests.labeling.conftest import embed, open_query

__all__ = ["open_query"]

IMAGES = 12
#: US dollars for one image, by the server's tokens and the prices of `reader`.
COST = (800 * 2.5 + 10) / 1e6
FORM = {"queries": "open", "benchmark": "", "max_cost": ""}


@pytest.fixture
def server(settings):
    with ChatServer(grades=True, retry_after="0.01") as started:
        settings.MULTIMODAL_ENDPOINTS = {"local": started.url}
        yield started


@pytest.fixture
def query(var_dir, toy_model, open_query, settings):
    """An open query over images with files, its list in the order of their ids."""
    settings.MULTIMODAL_MAX_FAILURES = 30
    images = [toy_image(number) for number in range(1, IMAGES + 1)]
    embed(images, scores=[1 - image.pk / 100 for image in images])
    return open_query("a toad", guidelines="At night.")


@pytest.fixture
def reader(server, admin):
    setup = {"base_url": server.url, "model": "a/model", "price_in": 2.5, "price_out": 10.0}
    return reader_create(reader=Reader(name="local", **setup), by=admin)


def begun(reader, *queries, depth=IMAGES, max_cost=None):
    return reading_begin(reader=reader, queries=queries, depth=depth, max_cost=max_cost, by=None)


def worked(job):
    """Do a job in this process until it ends, however it ends."""
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    return job


def read(reader):
    """image id -> probability."""
    return dict(reader.readings.order_by("image_id").values_list("image_id", "probability"))


def test_a_reader_reads_to_a_depth_and_the_estimate_was_right(reader, query, server):
    told = reading_estimate(reader=reader, queries=[query], depth=5)
    assert (told.pairs, told.answered, told.requests, told.measured) == (5, 0, 5, False)
    job = worked(begun(reader, query, depth=5))
    assert (job.state, job.error, job.done, job.failed, job.total) == ("done", "", 5, 0, 5)
    prompt = server.requests[0].prompt
    assert "The query is: a toad\n\nThe guidelines for this query:\nAt night." in prompt
    assert read(reader) == {
        number: pytest.approx(expected_probability(prompt, bytes_of(number)))
        for number in range(1, 6)
    }
    told = reading_estimate(reader=reader, queries=[query], depth=9)
    assert (told.pairs, told.answered, told.requests, told.measured) == (9, 5, 4, True)
    assert told.minutes > 0
    job = worked(begun(reader, query, depth=9))
    assert (job.done, job.total, len(server.requests)) == (9, 9, 9)
    assert job.result == {
        "requests": 4, "prompt_tokens": told.prompt_tokens,
        "completion_tokens": told.completion_tokens, "cost": pytest.approx(told.cost),
    }  # fmt: skip
    assert told.cost == pytest.approx(4 * COST)
    # Other guidelines are another prompt.
    query_update(query=query, by=None, guidelines="By day.")
    query.refresh_from_db()
    assert reading_estimate(reader=reader, queries=[query], depth=9).requests == 9


def test_a_server_that_errs_stalls_and_answers_nonsense(
    reader, query, server, settings, monkeypatch
):
    monkeypatch.setattr(client_module, "MAX_RETRIES", 1)
    settings.MULTIMODAL_CONCURRENCY, settings.MULTIMODAL_TIMEOUT = 1, 0.3
    moods = ["500", "", "slow", "slow", "maybe", "no_logprobs", "garbage", "503", "", "no_top"]
    server.script.extend(moods)
    job = worked(begun(reader, query))
    assert (job.state, job.done, job.failed, job.total) == ("done", 9, 3, 12)
    failed = dict(JobItemError.objects.filter(job=job).values_list("image_id", "message"))
    assert {number: text.split(";")[0].split(":")[0] for number, text in failed.items()} == {
        2: "The server didn't answer in time.", 3: "The model gives no grade",
        5: "The server's response can't be read",
    }  # fmt: skip
    found = read(reader)
    assert found.keys() == {*range(1, 13)} - failed.keys()
    # Without log-probabilities it is a grade.
    assert {3 * found[number] for number in (4, 7)} <= {0, 1, 2, 3}
    assert found[1] == pytest.approx(expected_probability(server.requests[0].prompt, bytes_of(1)))
    # What failed is asked once more, what was read isn't.
    sent = len(server.requests)
    assert worked(begun(reader, query)).done == 12
    assert len(server.requests) == sent + 3


def test_a_job_that_is_cut_short_or_killed_asks_nothing_twice(
    reader, query, server, settings, monkeypatch
):
    monkeypatch.setattr("core.jobs.services.SLICE_SECONDS", 0.2)
    settings.MULTIMODAL_CONCURRENCY, server.delay = 2, 0.1
    job = begun(reader, query)
    while not reader.readings.exists():
        assert job_slice_run(job_id=job.pk) is Slice.MORE
    assert reader.readings.count() < IMAGES
    with pytest.raises(Conflict, match="is at work"):
        begun(reader, query)
    monkeypatch.setattr("core.jobs.services.SLICE_SECONDS", 5.0)
    settings.MULTIMODAL_CONCURRENCY, stored = 1, reading_job._Step.store

    def die(*answers):
        stored(*answers)
        raise SystemExit

    with monkeypatch.context() as patch:
        # The worker dies between the answers and their count.
        patch.setattr(reading_job._Step, "store", die)
        with pytest.raises(SystemExit):
            job_slice_run(job_id=job.pk)
    assert reader.readings.count() == len(server.requests)
    assert job_cancel(job=job)
    assert job_retry(job=job)
    job = worked(job)
    assert (job.state, job.done, job.total) == ("done", 12, 12)
    assert len(server.requests) == len({sent.jpeg for sent in server.requests}) == IMAGES
    assert job.result["requests"] == IMAGES


@pytest.mark.parametrize("at_once", [1, 64])
def test_the_budget_is_never_passed(reader, query, server, settings, admin, at_once):
    settings.MULTIMODAL_CONCURRENCY, server.delay = at_once, 0.02
    # Examples make an image dearer than the guess.
    for number, relevant in ((1, True), (2, False)):
        example_pin(query=query, image_id=number, relevant=relevant, by=admin)
    job = worked(begun(reader, query, max_cost=0.02))
    assert job.state == "failed"
    assert "The cost limit of $0.02 is reached" in job.error
    spent = sum(len(sent.images) * 800 * 2.5 + 10 for sent in server.requests) / 1e6
    assert job.result["cost"] == pytest.approx(spent)
    # No other image fits.
    assert 0.02 - 3 * COST < spent <= 0.02
    assert reader.readings.count() == len(server.requests)


def test_examples_are_shown_but_never_of_themselves_and_withdrawn_ones_never(
    reader, query, server, admin, settings
):
    settings.MULTIMODAL_CONCURRENCY = 1
    for number, relevant in ((1, True), (2, False), (3, True)):
        example_pin(query=query, image_id=number, relevant=relevant, note=f"n{number}", by=admin)
    for number in (3, 5):
        image_withdraw(image=Candidate.objects.get(image=number).image, by=admin)
    job = worked(begun(reader, query, depth=6))
    assert (job.state, job.done, job.failed, job.total) == ("done", 4, 0, 4)
    assert [sent.images for sent in server.requests] == [
        [bytes_of(number) for number in numbers]
        for numbers in ((2, 1), (1, 2), (1, 2, 4), (1, 2, 6))
    ]
    lines = re.findall("An image that is .*?: n[0-9]", server.requests[2].prompt)
    assert lines == ["An image that is relevant: n1", "An image that is not relevant: n2"]


ENTRY_POINT = """
import numpy as np
seen = []
def vilt(text, guidelines, images):
    seen.append((text, guidelines, [image.size for image in images]))
    return np.array([np.asarray(image).mean() / 255 for image in images])
def wrong(text, guidelines, images):
    return [0.5, 2.0][:len(images)]
"""


def test_an_installed_entry_point_reads(query, tmp_path, monkeypatch, settings):
    (tmp_path / "toy_readers.py").write_text(ENTRY_POINT)
    folder = tmp_path / "toy_readers-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-readers\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(
        "[inquire_annotator.readers]\nvilt = toy_readers:vilt\nwrong = toy_readers:wrong\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("extras.reading.reading_job.AT_ONCE", 5)
    settings.MULTIMODAL_MAX_SIDE = 32
    vilt, wrong = (
        reader_create(reader=Reader(name=name, entry_point=name), by=None)
        for name in ("vilt", "wrong")
    )
    job = worked(begun(vilt, query))
    assert (job.state, job.error, job.done) == ("done", "", 12)
    assert len(read(vilt)) == 12
    assert len({round(one, 3) for one in read(vilt).values()}) > 3
    seen = sys.modules["toy_readers"].seen
    assert [len(sizes) for _, _, sizes in seen] == [5, 5, 2]
    assert {(text, guidelines) for text, guidelines, _ in seen} == {("a toad", "At night.")}
    assert {max(size) for _, _, sizes in seen for size in sizes} == {32}
    told = reading_estimate(reader=vilt, queries=[query], depth=12)
    assert (told.requests, told.cost, told.prompt_tokens) == (0, None, 0)
    assert "an array of (2,)" in worked(begun(wrong, query)).error
    assert "not from 0 to 1" in worked(begun(wrong, query, depth=2)).error
    assert read(wrong) == {}
    with pytest.raises(ValidationError, match="has no prices"):
        begun(vilt, query, max_cost=1.0)
    with pytest.raises(ValidationError, match="No such reader is installed"):
        reader_create(reader=Reader(name="gone", entry_point="gone"), by=None)


def test_which_queries_are_read(query, new_query):
    new_query("without a list")
    assert [one.pk for one in queries_to_read("open")] == [query.pk]
    assert queries_to_read("all", query.benchmark) == queries_to_read(str(query.query_id))
    for text in ("", "closed", f"{query.query_id}, 77", "1;2"):
        with pytest.raises(ValidationError, match="Write open, all, or numbers"):
            queries_to_read(text)


def test_admins_make_readers_and_start_them_and_annotators_see_nothing(
    query, server, admin, reviewer, annotator
):
    fields = {"name": "ours", "model": "a/model", "requests_per_minute": 0, "prompt": "{query}?"}
    pages = client_of(admin)
    answer = pages.post("/readers/", fields | {"endpoint": "", "entry_point": ""})
    assert "Choose a server or a Python entry point." in answer.text
    answer = pages.post("/readers/", fields | {"endpoint": "local", "price_in": 1, "price_out": 2})
    page = answer["Location"]
    reader = Reader.objects.get()
    assert (reader.base_url, reader.prompt, page) == (
        server.url,
        "{query}?",
        f"/readers/{reader.pk}/",
    )
    answer = pages.post(page, FORM | {"depth": 4, "act": "start"})
    assert "about <strong>" not in answer.text
    assert not Job.objects.filter(kind="read_images").exists()
    seen = re.search(r'name="seen" value="([^"]*)"', answer.text)[1].replace("&#x27;", "'")
    # What was estimated is what starts.
    pages.post(page, FORM | {"depth": 5, "act": "start", "seen": seen})
    assert not Job.objects.filter(kind="read_images").exists()
    pages.post(page, FORM | {"depth": 4, "act": "start", "seen": seen})
    job = Job.objects.get(kind="read_images")
    assert "Stop" in pages.get(page).text
    pages.post(page, {"act": "stop"})
    job.refresh_from_db()
    assert job.state == "canceled"

    api, address = api_of(admin), f"/api/readers/{reader.pk}/readings/"
    answer = api.post(address, {"depth": 4, "estimate": True}, format="json")
    assert (answer.status_code, answer.json()["requests"]) == (200, 4)
    answer = api.post(address, {"depth": 4, "max_cost": 1}, format="json")
    assert answer.status_code == 201
    assert worked(Job.objects.get(pk=answer.json()["id"])).done == 4
    assert api.get("/api/readers/").json()[0]["readings"] == 4
    answer = api.post(
        "/api/readers/", {"name": "second", "endpoint": "local", "model": "b"}, format="json"
    )
    assert (answer.status_code, answer.json()["base_url"]) == (201, server.url)
    answer = api.post("/api/readers/", {"name": "third", "endpoint": "else"}, format="json")
    assert answer.status_code == 400

    shown = client_of(reviewer).get(page)
    assert (shown.status_code, "Start" in shown.text, "Read images" in shown.text) == (
        200, False, False,
    )  # fmt: skip
    for client, addresses in (
        (client_of(reviewer), {"post": ["/readers/", page]}),
        (api_of(reviewer), {"post": ["/api/readers/", address]}),
        (client_of(annotator), {"get": ["/readers/", page], "post": [page]}),
        (api_of(annotator), {"get": ["/api/readers/"], "post": ["/api/readers/", address]}),
    ):
        for method, paths in addresses.items():
            for path in paths:
                assert getattr(client, method)(path).status_code == 403, (method, path)
    assert Reading.objects.count() == 4
