"""The page, the API and the command that begin two-stage runs."""

import io
import re

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from core.jobs.models import Job
from evaluation.reranking.estimate import rerank_estimate
from evaluation.reranking.services import RerankChoice
from evaluation.runs.models import Run
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding
from retrieval.flags.services import image_withdraw
from tests.conftest import client_of
from tests.evaluation.chat_server import ChatServer
from tests.evaluation.rerank_toy import (
    begun,
    expected_order,
    first_stage,
    order_of,
    setup_of,
    small_release,
    toy_image,
    worked,
)
from tests.releases.toy_release import toy_release
from tests.retrieval.making import embed_rows
from tests.toy_model import toy_model as toy_spec


@pytest.fixture
def server(settings):
    with ChatServer() as started:
        settings.MULTIMODAL_ENDPOINTS = {"local": started.url}
        yield started


@pytest.fixture
def release(db, var_dir):
    for number in range(1, 7):
        toy_image(number)
    return small_release()


@pytest.fixture
def first(release):
    return first_stage(release)


@pytest.fixture
def model(release):
    made = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    embed_rows(made, {number: [number, 7 - number] for number in range(1, 7)})
    return made


@pytest.fixture
def page(admin, release):
    client, address = client_of(admin), reverse("rerank-run", args=[release.pk])

    def send(data=None):
        answer = client.get(address) if data is None else client.post(address, data)
        return answer if answer.status_code == 302 else answer.content.decode()

    return send


def chosen(first, **values):
    """A filled form for the server of the tests."""
    return {
        "first_stage": first.pk, "depth": 4, "kind": "multimodal", "endpoint": "local",
        "api_model": "a/model", "price_in": "2.5", "price_out": "10", "max_cost": "", "rpm": "6000",
        "name": "", "act": "estimate", **values,
    }  # fmt: skip


def seen_of(html):
    return re.search(r'name="seen" value="(\w+)"', html).group(1)


def test_a_run_is_estimated_and_then_started(page, release, server, reviewer):
    assert "Nothing to re-rank yet" in page()
    first = first_stage(release)
    html = page(chosen(first, rpm="60"))
    assert "at least a minute, by the limit of requests" in html
    html = page(chosen(first))
    assert "12 in 3 queries" in html
    # 12 requests of about 1,000 tokens in and 2 out.
    assert "about 12,000 in, 24 out" in html
    assert "<strong>about $0.0302</strong>" in html
    assert not server.requests
    assert not Run.objects.filter(kind="rerank_multimodal").exists()
    answer = page(chosen(first, act="start", seen=seen_of(html)))
    assert answer.status_code == 302
    run = Run.objects.get(kind="rerank_multimodal")
    assert (run.owner.username, run.rerank_depth, run.name) == (
        "ada", 4, "first stage → a/model (top 4)",
    )  # fmt: skip
    assert f'data-job="{run.job_id}"' in page()
    assert worked(run).state == "done"
    assert order_of(run) == expected_order(4)
    assert "$0.0241 spent" in page()
    # An estimate counts what can't be sent.
    image_withdraw(image=Image.objects.get(pk=3), by=reviewer)
    choice = RerankChoice(release, first, 5, endpoint=setup_of(server.url, max_side=1024))
    estimate = rerank_estimate(choice)
    assert (estimate.pairs, estimate.unavailable) == (15, 3)
    assert estimate.cost is None


def test_what_was_changed_after_the_estimate_is_not_started(page, first, server):
    seen = seen_of(page(chosen(first)))
    html = page(chosen(first, act="start", seen=seen, depth=6))
    assert "17 in 3 queries" in html
    assert not Run.objects.filter(kind="rerank_multimodal").exists()
    # The name alone is no reason to look again.
    assert page(chosen(first, act="start", seen=seen, name="mine")).status_code == 302


def test_an_embedding_model_reranks_too(page, first, model):
    Embedding.objects.filter(model=model, image_id=6).delete()
    data = {"first_stage": first.pk, "depth": 3, "kind": "embedding", "embedding_model": model.pk}
    html = page({**data, "act": "estimate"})
    assert "9 in 3 queries" in html
    assert "Not embedded</dt><dd>2;" in html
    page({**data, "act": "start", "seen": seen_of(html)})
    assert Run.objects.get(kind="rerank_embedding").embedding_model == model


def test_impossible_choices_are_named_at_their_field(page, admin_api, first, server):
    for values, text in (
        ({"depth": 2000}, "Choose a depth from 1 to 1,000"),
        ({"api_model": ""}, "This is needed."),
        ({"endpoint": "http://169.254.169.254/"}, "Select a valid choice"),
        ({"price_out": ""}, "Write both prices"),
        ({"prompt": "Is it there?"}, "needs {query} where the query’s text goes"),
        ({"max_cost": "5", "price_in": "", "price_out": ""}, "needs both prices"),
    ):
        assert text in page(chosen(first, act="start", **values))
    assert "Does this image show {query}?" in page()
    valid = {"first_stage": first.pk, "depth": 4, "endpoint": "local", "api_model": "m"}
    for values, field in (
        ({"endpoint": "http://169.254.169.254/"}, "endpoint"),
        ({"first_stage": 0}, "first_stage"),
        ({"endpoint": None, "embedding_model": "unknown"}, "embedding_model"),
        ({"endpoint": None}, "kind"),
        ({"depth": 0}, "depth"),
        ({"prompt": "Is it there?"}, "prompt"),
    ):
        body = {name: value for name, value in (valid | values).items() if value is not None}
        answer = admin_api.post(f"/api/releases/{first.release_id}/rerank/", body)
        assert answer.status_code == 400
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert not Run.objects.filter(kind="rerank_multimodal").exists()


def test_a_run_that_stopped_goes_on_with_another_limit(page, first, server, admin):
    run = begun(first.release, first, 6, server.url, price_in=2.5, price_out=10, max_cost=0.01)
    worked(run)
    html = page()
    assert "The cost limit of $0.01 is reached" in html
    client, address = client_of(admin), reverse("rerank-resume", args=[run.pk])
    client.post(address, {"max_cost": "much", "rpm": "0"})
    run.job.refresh_from_db()
    assert run.job.state == "failed"
    client.post(address, {"max_cost": "1", "rpm": "0"})
    client.post(reverse("rerank-stop", args=[run.pk]))
    run.job.refresh_from_db()
    assert run.job.state == "canceled"
    assert "Resume" in page()
    client.post(address, {"max_cost": "1", "rpm": "0"})
    assert worked(run).state == "done"
    # What was answered costs nothing again.
    html = page(chosen(first))
    assert "12, free of charge" in html


def test_admins_alone_rerank(annotator, researcher, reviewer, first, server):
    run = begun(first.release, first, 4, server.url)
    for person in (annotator, researcher, reviewer):
        client = client_of(person)
        assert client.get(reverse("rerank-run", args=[first.release_id])).status_code == 403
        for name, pk in (("rerank-resume", run.pk), ("rerank-stop", run.pk),
                         ("api-rerank", first.release_id), ("api-rerank-resume", run.pk),
                         ("api-rerank-estimate", first.release_id)):  # fmt: skip
            answer = client.post(reverse(name, args=[pk]), {}, content_type="application/json")
            assert answer.status_code == 403, name
    assert Run.objects.filter(kind="rerank_multimodal").count() == 1


def test_the_api_estimates_begins_and_resumes(admin_api, first, server):
    base = f"/api/releases/{first.release_id}/rerank/"
    arguments = {
        "first_stage": first.pk, "depth": 4, "endpoint": "local", "api_model": "a/model",
        "price_in": 2.5, "price_out": 10, "max_cost": 0.005, "prompt": "Is it {query}? Yes or No.",
    }  # fmt: skip
    estimate = admin_api.post(f"{base}estimate/", arguments).json()
    assert (estimate["pairs"], estimate["requests"], estimate["measured"]) == (12, 12, False)
    answer = admin_api.post(base, arguments)
    assert answer.status_code == 201
    run = Run.objects.get(pk=answer.json()["id"])
    assert answer["Location"].endswith(f"/api/runs/{run.pk}/")
    assert answer.json()["prompt"] == run.endpoint["prompt"] == arguments["prompt"]
    assert worked(run).state == "failed"
    resumed = admin_api.post(f"/api/runs/{run.pk}/rerank/resume/", {"max_cost": 1})
    assert (resumed.status_code, resumed.json()["state"]) == (200, "queued")
    assert worked(run).state == "done"
    assert admin_api.post(f"/api/runs/{run.pk}/rerank/resume/", {}).status_code == 409
    assert admin_api.post(f"/api/runs/{first.pk}/rerank/resume/", {}).status_code == 404


def command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command("rerank_run", *map(str, arguments), stdout=out, stderr=err)
    return out.getvalue() + err.getvalue()


def test_the_command_takes_any_address(first, server, settings):
    settings.MULTIMODAL_ENDPOINTS = {}
    arguments = (first.pk, "--depth", 4, "--endpoint", server.url, "--api-model", "a/model",
             "--price-in", 2.5, "--price-out", 10)  # fmt: skip
    shown = command(*arguments, "--estimate")
    assert "12 images of 3 queries" in shown
    assert "12 requests with about 12,000 tokens, about $0.0302 (guessed" in shown
    assert not Run.objects.filter(kind="rerank_multimodal").exists()
    command(*arguments)
    run = Run.objects.get(kind="rerank_multimodal")
    assert (run.owner, run.endpoint["base_url"]) == (None, server.url)
    # The same again is the same run.
    assert f"Run {run.pk}, job {run.job_id}" in command(*arguments, "--max-cost", 3)
    assert Run.objects.filter(kind="rerank_multimodal").count() == 1


def test_the_command_takes_a_prompt_that_the_runs_card_shows(first, server, admin, tmp_path):
    arguments = (first.pk, "--depth", 4, "--endpoint", server.url, "--api-model", "a/model")
    file = tmp_path / "prompt.txt"
    file.write_text("Is it <{query}>?\nYes or No.\n", encoding="utf-8-sig")
    command(*arguments, "--prompt", file)
    run = Run.objects.get(kind="rerank_multimodal")
    assert run.endpoint["prompt"] == "Is it <{query}>?\nYes or No."
    card = client_of(admin).get(reverse("run", args=[run.pk])).content.decode()
    assert "<dt>Prompt</dt><dd>Is it &lt;{query}&gt;?<br>Yes or No.</dd>" in card
    file.write_bytes(b"{query} \xff")
    with pytest.raises(CommandError, match="isn't text in UTF-8"):
        command(*arguments, "--prompt", file)
    file.write_text("Is it there?")
    with pytest.raises(CommandError, match=re.escape("needs {query} where")):
        command(*arguments, "--prompt", file)


def test_the_command_reranks_fixed_lists_with_a_model(var_dir, images):
    made = embedding_model_get_or_create(name=toy_spec(), dimension=2)
    embed_rows(made, {number: [number, 7 - number] for number in range(1, 7)})
    release = toy_release()
    command(f"fixed:{release}", "--depth", 4, "--model", made.name)
    run = Run.objects.get()
    assert (run.task, run.kind) == ("rerank", "rerank_embedding")
    assert worked(run).state == Job.State.DONE


def test_the_command_says_what_is_wrong(first):
    for arguments, text in (
        (["999", "--model", "m"], "There is no run 999"),
        (["fixed:999", "--model", "m"], 'There is no release "999". Releases are: Toy v1.'),
        ([first.pk, "--model", "unknown/model"], "No image is embedded with 'unknown/model' yet"),
        ([first.pk, "--endpoint", "http://a/v1"], "--endpoint needs --api-model"),
        ([first.pk, "--endpoint", "http://u:p@a/v1", "--api-model", "m"], "MULTIMODAL_API_KEY"),
        ([first.pk, "--model", "m", "--endpoint", "http://a/v1"], "not allowed with"),
        ([first.pk, "--endpoint", "http://a/v1", "--max-cost", "much"], "not an amount"),
    ):
        with pytest.raises(CommandError, match=re.escape(text)):
            command(*arguments)
    assert not Run.objects.filter(kind__startswith="rerank_").exists()
