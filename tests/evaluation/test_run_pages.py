"""The pages of runs: who may do what, and what is said."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from core.jobs.models import Job
from core.jobs.services import job_slice_run
from evaluation.runs.models import Run, RunScores
from evaluation.runs.services import run_publish
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.flags.services import image_withdraw
from tests.conftest import client_of, person
from tests.evaluation.runs import scored_run, stored_run, trec
from tests.releases.conftest import World
from tests.releases.toy_release import toy_release

pytestmark = pytest.mark.django_db

ORDERS = {1: [2, 1, 4], 2: [2, 5], 3: [3]}


class Site(NamedTuple):
    """A release, and the researcher's browser."""

    world: World
    release: Release
    browser: Client
    researcher: Any

    @property
    def submit(self) -> str:
        return f"/releases/{self.release.pk}/submit/"

    def send(self, content: bytes, **values: Any) -> Any:
        """Submit a run file."""
        file = SimpleUploadedFile("run.txt", content)
        form = {"file": file, "name": "my run", "task": "full", "split": "all", **values}
        return self.browser.post(self.submit, form)

    def run(self, **values: Any) -> Run:
        """A scored run of the researcher's."""
        return scored_run(self.release, ORDERS, owner=self.researcher, **values)


@pytest.fixture
def site(toy: Release, world: World, db: None) -> Site:
    return Site(world, toy, world.client("researcher"), world.person("researcher"))


def test_submitting_in_the_browser(site: Site) -> None:
    page = site.browser.get(site.submit).text
    assert "<strong>5 of 5</strong> submissions with test queries are left" in page
    answer = site.send(
        trec(ORDERS), parameters="86.5", open_weights="true", link="https://example.org/a"
    )
    run = Run.objects.get()
    assert answer.url == f"/runs/{run.pk}/"
    assert f'data-job="{run.job_id}"' in site.browser.get(answer.url).text
    assert (run.owner, run.name, run.parameters) == (site.researcher, "my run", 86.5)
    assert (run.open_weights, run.link, run.published) == (True, "https://example.org/a", False)
    assert f'data-job="{run.job_id}"' in site.browser.get("/runs/").text
    job_slice_run(job_id=run.job_id)
    scored = site.browser.get("/runs/").text
    assert "data-job" not in scored
    # (1/2 + 2/3) / 2 of the validation query; 1 and 1/3 of the test queries.
    assert "58.3" in scored
    assert "66.7" in scored


def test_images_withdrawn_since_are_reported(site: Site) -> None:
    assert "withdrawn" not in site.browser.get(site.submit).text
    image_withdraw(image=Image(pk=1), by=site.world.person("reviewer"))
    page = site.browser.get(site.submit).text
    assert "1 image was withdrawn from the corpus after the release was made" in page
    newer = toy_release(version=2)
    assert "withdrawn" not in site.browser.get(f"/releases/{newer.pk}/submit/").text


def test_errors_are_listed_with_their_lines(site: Site) -> None:
    answer = site.send(b"9 Q0 1 1 0.5 x\n1 Q0 77 1 inf x\n")
    run = Run.objects.get()
    job_slice_run(job_id=run.job_id)
    for reader in (site.browser, site.world.client("admin")):
        page = reader.get(answer.url).text
        assert "The file is refused: 2 errors" in page
        assert "the release has no query 9" in page
        assert "&#x27;inf&#x27; is not a finite number" in page
        assert "data-job" not in page
    assert "The file is refused. run.txt, line 1, query_id" in site.browser.get("/runs/").text
    assert site.browser.post(f"/runs/{run.pk}/score/").status_code == 302
    assert Job.objects.get(pk=run.job_id).state == "failed"
    assert client_of(person("rolf", "researcher")).get(answer.url).status_code == 404
    assert site.browser.post(f"/runs/{run.pk}/delete/").url == "/runs/"
    assert not Run.objects.exists()


def test_what_is_refused_is_shown_beside_its_field(site: Site, settings: Any) -> None:
    answer = site.send(trec(ORDERS), name="", link="javascript:alert(1)")
    assert "This field is required." in answer.text
    assert "Enter a valid URL." in answer.text
    settings.RUN_MAX_BYTES = 10
    answer = site.send(trec(ORDERS))
    assert "10 are taken" in answer.text
    assert 'value="my run"' in answer.text
    assert not Run.objects.exists()


def test_the_form_says_when_the_next_submission_is_free(site: Site, settings: Any) -> None:
    settings.TEST_SUBMISSIONS_PER_DAY = 1
    site.send(trec(ORDERS))
    answer = site.send(trec(ORDERS))
    assert "the next is free at" in answer.text
    assert "<strong>None of 1</strong>" in answer.text
    assert Run.objects.count() == 1


def test_without_fixed_lists_there_is_one_task(site: Site) -> None:
    release = toy_release(name="Unlisted", fixed=[])
    page = site.browser.get(f"/releases/{release.pk}/submit/").text
    assert 'name="task" value="full"' in page
    assert "Re-ranking of the fixed" not in page


def test_annotators_and_strangers_submit_nothing(site: Site) -> None:
    annotator = site.world.client("annotator")
    for path in (site.submit, "/runs/"):
        assert Client().get(path).status_code == 302
        assert annotator.get(path).status_code == 403
        assert annotator.post(path, {}).status_code in (403, 405)
        for role in ("reviewer", "admin"):
            assert site.world.client(role).get(path).status_code == 200
    assert site.browser.get("/releases/999999/submit/").status_code == 404


def test_others_neither_see_nor_change_a_private_run(site: Site) -> None:
    run, other = site.run(), client_of(person("rolf", "researcher"))
    for act in ("card", "publish", "unpublish", "delete", "score"):
        assert other.post(f"/runs/{run.pk}/{act}/", {"name": "stolen"}).status_code == 404
    run_publish(run=run)
    for act in ("card", "publish", "unpublish", "delete"):
        assert other.post(f"/runs/{run.pk}/{act}/", {"name": "stolen"}).status_code == 403
    run.refresh_from_db()
    assert (run.name, run.published) == ("toy run", True)
    assert "toy run" not in other.get("/runs/").text


def test_publishing_and_deleting_ask_first_and_admins_alone_undo_the_first(site: Site) -> None:
    run, browser = site.run(), site.browser
    assert "Everybody who is logged in sees it" in browser.get(f"/runs/{run.pk}/publish/").text
    assert not Run.objects.get(pk=run.pk).published
    assert browser.post(f"/runs/{run.pk}/publish/").url == f"/runs/{run.pk}/"
    assert Run.objects.get(pk=run.pk).published
    assert browser.post(f"/runs/{run.pk}/unpublish/").status_code == 403
    assert browser.post(f"/runs/{run.pk}/delete/").status_code == 403
    site.world.client("admin").post(f"/runs/{run.pk}/unpublish/")
    assert not Run.objects.get(pk=run.pk).published
    assert "removed for good" in browser.get(f"/runs/{run.pk}/delete/").text
    assert Run.objects.filter(pk=run.pk).exists()
    assert browser.post(f"/runs/{run.pk}/delete/").url == "/runs/"
    assert not Run.objects.exists()
    assert "No runs yet" in browser.get("/runs/").text


def test_a_card_can_be_changed_after_publishing(site: Site) -> None:
    run, browser = run_publish(run=site.run()), site.browser
    page = browser.get(f"/runs/{run.pk}/card/").text
    assert 'value="toy run"' in page
    assert "Only an admin can take it off." in page
    browser.post(f"/runs/{run.pk}/card/", {"name": "A <b>name</b>", "open_weights": "false"})
    run.refresh_from_db()
    assert (run.name, run.open_weights, run.published) == ("A <b>name</b>", False, True)
    assert "A &lt;b&gt;name&lt;/b&gt;" in browser.get("/runs/").text
    answer = browser.post(f"/runs/{run.pk}/card/", {"name": ""})
    assert "This field is required." in answer.text


def test_a_failed_scoring_is_reported_and_begun_again(site: Site) -> None:
    run = stored_run(site.release, ORDERS, owner=site.researcher)
    site.browser.post(f"/runs/{run.pk}/score/")
    run.refresh_from_db()
    aside = run.path.with_suffix(".aside")
    run.path.rename(aside)
    job_slice_run(job_id=run.job_id)
    shown = site.browser.get("/runs/").text
    assert f"runs/{run.pk}.npz is missing: restore it from a backup" in shown
    assert str(site.world.folder) not in shown
    aside.rename(run.path)
    assert "Score it again" in site.browser.get(f"/runs/{run.pk}/card/").text
    site.browser.post(f"/runs/{run.pk}/score/")
    job_slice_run(job_id=run.job_id)
    run.refresh_from_db()
    assert run.ready


def test_a_run_is_scored_on_another_version(site: Site) -> None:
    newer, other = toy_release(version=2), toy_release("Another benchmark")
    run = site.run()
    page = site.browser.get(f"/runs/{run.pk}/card/").text
    assert f'<option value="{newer.pk}">Toy v2</option>' in page
    assert "Another benchmark" not in page
    site.browser.post(f"/runs/{run.pk}/score/", {"release": newer.pk})
    for wrong in (other.pk, "²", "x"):
        answer = site.browser.post(f"/runs/{run.pk}/score/", {"release": wrong})
        assert answer.status_code == 404
    scored = RunScores.objects.filter(run=run).order_by("pk")
    assert [score.release_id for score in scored] == [site.release.pk, newer.pk]
    for best in run.second_stages.all():
        assert set(best.scores.values_list("release", flat=True)) == {site.release.pk, newer.pk}


def test_admins_see_everybodys_runs(site: Site, django_assert_max_num_queries: Any) -> None:
    site.run()
    scored_run(site.release, ORDERS, name="operator's", owner=None)
    admin = site.world.client("admin")
    assert "toy run" not in admin.get("/runs/").text
    everybody = admin.get("/runs/?of=all").text
    assert "toy run" in everybody
    assert "the operator" in everybody
    # The best possible re-ranks aren't anybody's submission.
    assert "Best possible" not in everybody
    for number in range(12):
        stored_run(site.release, ORDERS, name=f"more {number}", owner=site.researcher)
    with django_assert_max_num_queries(12):
        admin.get("/runs/?of=all")
    assert "operator&#x27;s" not in site.browser.get("/runs/?of=all").text
