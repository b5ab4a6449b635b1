import pytest

from core.jobs.services import job_create, job_item_error
from tests.retrieval.making import embed_rows

pytestmark = pytest.mark.django_db

PAGES = ["retrieval/species", "retrieval/image", "retrieval/embeddingmodel", "core/job"]


@pytest.fixture
def superuser(admin):
    admin.is_staff = admin.is_superuser = True
    admin.save()
    return admin


@pytest.mark.parametrize("page", PAGES)
def test_the_corpus_is_looked_at_and_not_changed(client, superuser, animals, toy_model, page):
    embed_rows(toy_model, {1: [1, 0, 0]})
    job = job_create(kind="embed", params={"model": "toy"})
    job_item_error(job=job, item="image 1", message="broken")
    pk = dict(zip(PAGES, (animals["Ursus arctos"].pk, 1, toy_model.pk, job.pk), strict=True))[page]
    client.force_login(superuser)
    listed = client.get(f"/admin/{page}/?q=a")
    assert listed.status_code == 200
    shown = client.get(f"/admin/{page}/{pk}/change/")
    assert shown.status_code == 200
    assert client.post(f"/admin/{page}/{pk}/change/", {}).status_code == 403
    assert client.get(f"/admin/{page}/add/").status_code == 403
    assert client.post(f"/admin/{page}/{pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.parametrize("page", PAGES)
def test_annotators_do_not_get_in(client, annotator, page):
    client.force_login(annotator)
    assert client.get(f"/admin/{page}/").status_code == 302
