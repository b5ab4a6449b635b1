"""The pages of runs: who may do what, and what is said."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from benchmark.runs.models import Run, RunScores
from benchmark.runs.services import run_publish
from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.flags.services import image_withdraw
from tests.benchmark.runs import scored_run, stored_run, trec
from tests.benchmark.toy_release import toy_release
from tests.conftest import client_of, person

ORDERS = {1: [2, 1, 4], 2: [2, 5], 3: [3]}


@pytest.fixture
def release(images, var_dir):
    return toy_release()


@pytest.fixture
def browser(researcher):
    return client_of(researcher)


def form(content: bytes, **values):
    file = SimpleUploadedFile("run.txt", content)
    return {"file": file, "name": "my run", "task": "full", "split": "all", **values}


def test_submitting_in_the_browser(release, browser, researcher):
    page = browser.get(f"/releases/{release.pk}/submit/")
    assert "<strong>5 of 5</strong> submissions with test queries are left" in page.text
    answer = browser.post(
        f"/releases/{release.pk}/submit/",
        form(trec(ORDERS), parameters="86.5", open_weights="true", link="https://example.org/a"),
    )
    run = Run.objects.get()
    assert answer.url == f"/runs/{run.pk}/"
    assert f'data-job="{run.job_id}"' in browser.get(answer.url).text
    assert (run.owner, run.name, run.parameters) == (researcher, "my run", 86.5)
    assert (run.open_weights, run.link, run.published) == (True, "https://example.org/a", False)
    waiting = browser.get("/runs/").text
    assert f'data-job="{run.job_id}"' in waiting
    job_slice_run(job_id=run.job_id)
    scored = browser.get("/runs/").text
    assert "data-job" not in scored
    # (1/2 + 2/3) / 2 of the validation query; 1 and 1/3 of the test queries.
    assert "58.3" in scored
    assert "66.7" in scored


def test_images_withdrawn_since_are_reported(release, browser, reviewer, images):
    assert "withdrawn" not in browser.get(f"/releases/{release.pk}/submit/").text
    image_withdraw(image=images[0], by=reviewer)
    page = browser.get(f"/releases/{release.pk}/submit/").text
    assert "1 image was withdrawn from the corpus after the release was made" in page
    newer = toy_release(version=2)
    assert "withdrawn" not in browser.get(f"/releases/{newer.pk}/submit/").text


def test_errors_are_listed_with_their_lines(release, browser, admin):
    answer = browser.post(
        f"/releases/{release.pk}/submit/", form(b"9 Q0 1 1 0.5 x\n1 Q0 77 1 inf x\n")
    )
    run = Run.objects.get()
    job_slice_run(job_id=run.job_id)
    for reader in (browser, client_of(admin)):
        page = reader.get(answer.url).text
        assert "The file is refused: 2 errors" in page
        assert "the release has no query 9" in page
        assert "&#x27;inf&#x27; is not a finite number" in page
        assert "data-job" not in page
    assert "The file is refused. run.txt, line 1, query_id" in browser.get("/runs/").text
    assert browser.post(f"/runs/{run.pk}/score/").status_code == 302
    assert Job.objects.get(pk=run.job_id).state == "failed"
    assert client_of(person("rolf", "researcher")).get(answer.url).status_code == 404
    assert browser.post(f"/runs/{run.pk}/delete/").url == "/runs/"
    assert not Run.objects.exists()


def test_a_file_that_is_too_large_is_shown_beside_its_field(release, browser, settings):
    settings.RUN_MAX_BYTES = 10
    answer = browser.post(f"/releases/{release.pk}/submit/", form(trec(ORDERS)))
    assert "10 are taken" in answer.text
    assert 'value="my run"' in answer.text
    assert not Run.objects.exists()


def test_the_form_says_when_the_next_submission_is_free(release, browser, settings):
    settings.TEST_SUBMISSIONS_PER_DAY = 1
    browser.post(f"/releases/{release.pk}/submit/", form(trec(ORDERS)))
    answer = browser.post(f"/releases/{release.pk}/submit/", form(trec(ORDERS)))
    assert "the next is free at" in answer.text
    assert "<strong>None of 1</strong>" in answer.text
    assert Run.objects.count() == 1


def test_a_wrong_card_is_shown_beside_its_field(release, browser):
    answer = browser.post(
        f"/releases/{release.pk}/submit/", form(trec(ORDERS), name="", link="javascript:alert(1)")
    )
    assert "This field is required." in answer.text
    assert "Enter a valid URL." in answer.text
    assert not Run.objects.exists()


def test_without_fixed_lists_there_is_one_task(browser, images, var_dir):
    release = toy_release(fixed=[])
    page = browser.get(f"/releases/{release.pk}/submit/").text
    assert 'name="task" value="full"' in page
    assert "Re-ranking of the fixed" not in page


@pytest.mark.parametrize("address", ["/releases/{release}/submit/", "/runs/"])
def test_annotators_submit_nothing(release, clients, address):
    path = address.format(release=release.pk)
    codes = {role: client.get(path).status_code for role, client in clients.items()}
    assert codes == {"anonymous": 302, "annotator": 403, "reviewer": 200, "admin": 200}
    assert clients["annotator"].post(path, form(trec(ORDERS))).status_code in (403, 405)
    assert not Run.objects.exists()


def test_a_release_that_is_not_made_takes_no_runs(release, browser):
    assert browser.get("/releases/999999/submit/").status_code == 404


def test_others_neither_see_nor_change_a_private_run(release, researcher):
    run = scored_run(release, ORDERS, owner=researcher)
    other = client_of(person("rolf", "researcher"))
    for act in ("card", "publish", "unpublish", "delete", "score"):
        assert other.post(f"/runs/{run.pk}/{act}/", {"name": "stolen"}).status_code == 404
    run_publish(run=run)
    for act in ("card", "publish", "unpublish", "delete"):
        assert other.post(f"/runs/{run.pk}/{act}/", {"name": "stolen"}).status_code == 403
    run.refresh_from_db()
    assert (run.name, run.published) == ("toy run", True)
    assert "toy run" not in other.get("/runs/").text


def test_publishing_asks_first_and_only_admins_undo_it(release, browser, researcher, admin):
    run = scored_run(release, ORDERS, owner=researcher)
    assert "Everybody who is logged in sees it" in browser.get(f"/runs/{run.pk}/publish/").text
    assert not Run.objects.get(pk=run.pk).published
    assert browser.post(f"/runs/{run.pk}/publish/").url == f"/runs/{run.pk}/"
    assert Run.objects.get(pk=run.pk).published
    assert browser.post(f"/runs/{run.pk}/unpublish/").status_code == 403
    assert browser.post(f"/runs/{run.pk}/delete/").status_code == 403
    client_of(admin).post(f"/runs/{run.pk}/unpublish/")
    assert not Run.objects.get(pk=run.pk).published


def test_deleting_asks_first(release, browser, researcher):
    run = scored_run(release, ORDERS, owner=researcher)
    assert "removed for good" in browser.get(f"/runs/{run.pk}/delete/").text
    assert Run.objects.filter(pk=run.pk).exists()
    assert browser.post(f"/runs/{run.pk}/delete/").url == "/runs/"
    assert not Run.objects.exists()
    assert "No runs yet" in browser.get("/runs/").text


def test_a_card_can_be_changed_after_publishing(release, browser, researcher):
    run = run_publish(run=scored_run(release, ORDERS, owner=researcher))
    page = browser.get(f"/runs/{run.pk}/card/").text
    assert 'value="toy run"' in page
    assert "Only an admin can take it off." in page
    browser.post(f"/runs/{run.pk}/card/", {"name": "A <b>name</b>", "open_weights": "false"})
    run.refresh_from_db()
    assert (run.name, run.open_weights, run.published) == ("A <b>name</b>", False, True)
    assert "A &lt;b&gt;name&lt;/b&gt;" in browser.get("/runs/").text
    answer = browser.post(f"/runs/{run.pk}/card/", {"name": ""})
    assert "This field is required." in answer.text


def test_a_failed_scoring_is_reported_and_begun_again(release, browser, researcher, var_dir):
    run = stored_run(release, ORDERS, owner=researcher)
    browser.post(f"/runs/{run.pk}/score/")
    run.refresh_from_db()
    path = run.path
    aside = path.with_suffix(".aside")
    path.rename(aside)
    job_slice_run(job_id=run.job_id)
    shown = browser.get("/runs/").text
    assert f"runs/{run.pk}.npz is missing: restore it from a backup" in shown
    assert str(var_dir) not in shown
    aside.rename(path)
    assert "Score it again" in browser.get(f"/runs/{run.pk}/card/").text
    browser.post(f"/runs/{run.pk}/score/")
    assert Job.objects.get(pk=run.job_id).state == "queued"
    job_slice_run(job_id=run.job_id)
    run.refresh_from_db()
    assert run.ready


def test_a_run_is_scored_on_another_version(release, browser, researcher):
    newer = toy_release(version=2)
    other = toy_release("Another benchmark")
    run = scored_run(release, ORDERS, owner=researcher)
    page = browser.get(f"/runs/{run.pk}/card/").text
    assert f'<option value="{newer.pk}">Toy v2</option>' in page
    assert "Another benchmark" not in page
    browser.post(f"/runs/{run.pk}/score/", {"release": newer.pk})
    for wrong in (other.pk, "²", "x"):
        assert browser.post(f"/runs/{run.pk}/score/", {"release": wrong}).status_code == 404
    scored = RunScores.objects.filter(run=run).order_by("pk")
    assert [score.release_id for score in scored] == [release.pk, newer.pk]
    for best in run.second_stages.all():
        assert set(best.scores.values_list("release", flat=True)) == {release.pk, newer.pk}


def test_admins_see_everybodys_runs(
    release, researcher, admin, browser, django_assert_max_num_queries
):
    scored_run(release, ORDERS, owner=researcher)
    scored_run(release, ORDERS, name="operator's", owner=None)
    browser_of_admin = client_of(admin)
    assert "toy run" not in browser_of_admin.get("/runs/").text
    everybody = browser_of_admin.get("/runs/?of=all").text
    assert "toy run" in everybody
    assert "the operator" in everybody
    # The best possible re-ranks aren't anybody's submission.
    assert "Best possible" not in everybody
    for number in range(15):
        scored_run(release, ORDERS, name=f"more {number}", owner=researcher)
    with django_assert_max_num_queries(12):
        browser_of_admin.get("/runs/?of=all")
    assert "operator&#x27;s" not in browser.get("/runs/?of=all").text
