import pytest

from core.jobs.models import Job
from core.jobs.services import job_create, job_item_error
from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from tests.retrieval.making import embed_rows, image_row, unsigned
from tests.toy_model import toy_model

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(request, annotator_api, reviewer_api, admin_api, anonymous_api):
    """A client of each role, by name."""
    return {
        "annotator": annotator_api,
        "reviewer": reviewer_api,
        "admin": admin_api,
        "anonymous": anonymous_api,
    }


@pytest.fixture
def corpus(settings, animals):
    """Four embedded images: two bears, a monarch, one of no species."""
    settings.EMBEDDING_MODEL = toy_model()
    bear, monarch = animals["Ursus arctos"], animals["Danaus plexippus"]
    for number, species in enumerate([bear, monarch, None, bear], start=1):
        image_row(number, species, latitude=5.5, rights_holder="Ada")
    model = embedding_model_get_or_create(name=toy_model())
    embed_rows(model, {1: [3, 4], 2: [1, 0], 3: [0, 1], 4: [4, 3]})
    return animals


def problem(answer, status):
    """The fields that a problem document names, after checking its form."""
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    return {error["field"]: error["detail"] for error in body["errors"]} or body["detail"]


def test_search_answers_in_exact_order(corpus, annotator_api):
    body = annotator_api.get("/api/search/?text=a bear").json()
    assert (body["model"], body["total"]) == (toy_model(), 4)
    found = [(hit["rank"], hit["image"], round(hit["score"], 3)) for hit in body["results"]]
    assert found == [(1, 2, 1.0), (2, 4, 0.8), (3, 1, 0.6), (4, 3, 0.0)]
    first, last = body["results"][0], body["results"][3]
    sha8 = Image.objects.get(pk=2).sha256[:8]
    assert unsigned(first["url"]) == f"/images/2/{sha8}.jpg"
    assert unsigned(first["thumbnail_url"]) == f"/images/2/{sha8}-thumb.jpg"
    assert first["species"] == {
        "id": corpus["Danaus plexippus"].pk,
        "scientific_name": "Danaus plexippus",
        "common_name": "Monarch",
    }
    assert last["species"] is None


def test_search_within_species(corpus, annotator_api):
    for species, images in {
        f"species={corpus['Ursus arctos'].pk}": [4, 1],
        "species=ursidae": [4, 1],
        "species=Ursus arctos,Monarch": [2, 4, 1],
        "species=ursus&species=monarch&species=": [2, 4, 1],
        "species=": [2, 4, 1, 3],
        "species=viceroy": [],
        "limit=2": [2, 4],
    }.items():
        body = annotator_api.get(f"/api/search/?text=a bear&{species}").json()
        assert [hit["image"] for hit in body["results"]] == images


BAD_SEARCHES = [
    ("", "text", "Give a text"),
    ("text=", "text", "blank"),
    ("text=%20%20", "text", "blank"),
    ("text=%00", "text", "NUL"),
    ("text=x&specie=1", "specie", "no such parameter"),
    (f"text={'x' * 501}", "text", "500"),
    ("text=x&limit=0", "limit", "greater"),
    ("text=x&limit=501", "limit", "less"),
    ("text=x&limit=ten", "limit", "integer"),
    ("text=x&species=Ursus,Nessie,42000", "species", "Not in the corpus: Nessie, 42000."),
]


def test_a_bad_search_names_its_field(corpus, annotator_api):
    for query, field, says in BAD_SEARCHES:
        fields = problem(annotator_api.get(f"/api/search/?{query}"), 400)
        assert list(fields) == [field]
        assert says in fields[field]


def test_a_corpus_that_is_not_embedded_is_explained(annotator_api, settings):
    settings.EMBEDDING_MODEL = "toy"
    detail = problem(annotator_api.get("/api/search/?text=a bear"), 409)
    assert detail.startswith("The corpus has not been embedded by toy yet.")


def test_a_model_that_cannot_be_loaded_is_explained(corpus, annotator_api, settings):
    settings.EMBEDDING_MODEL = "/gone/away"
    EmbeddingModel.objects.update(name="/gone/away")
    assert "/gone/away" in problem(annotator_api.get("/api/search/?text=a bear"), 503)


def test_an_image_with_all_that_is_known(corpus, annotator_api):
    body = annotator_api.get("/api/images/1/").json()
    assert (body["id"], body["file_name"], body["width"], body["height"]) == (1, "1.jpg", 4, 3)
    assert (body["latitude"], body["longitude"], body["rights_holder"]) == (5.5, None, "Ada")
    assert body["species"]["common_name"] == "Brown Bear"
    assert problem(annotator_api.get("/api/images/77/"), 404)


@pytest.mark.parametrize(("role", "hidden"), [("annotator", True), ("reviewer", False)])
def test_species_names_can_be_hidden_from_annotators(corpus, api, settings, role, hidden):
    settings.HIDE_SPECIES_NAMES = True
    image = api[role].get("/api/images/1/").json()
    hits = api[role].get("/api/search/?text=a bear").json()["results"]
    assert (image["species"] is None) == hidden
    assert (image["file_name"] == "") == hidden
    assert (hits[0]["species"] is None) == hidden
    for address in ("/api/search/?text=a bear&species=Ursus arctos", "/api/images/?species=1"):
        assert api[role].get(address).status_code == (403 if hidden else 200)


def test_jobs_are_seen_by_who_started_them_and_by_admins(api, annotator, animals):
    image_row(1)
    mine = job_create(kind="embed", params={"model": "toy"}, created_by=annotator, title="Mine")
    other = job_create(kind="embed", params={"model": "toy"})
    job_item_error(job=mine, item="image 1", message="broken", image_id=1)
    seen = {role: [j["id"] for j in client.get("/api/jobs/").json().get("results", [])]
            for role, client in api.items()}  # fmt: skip
    assert seen == {
        "annotator": [mine.pk],
        "reviewer": [],
        "admin": [other.pk, mine.pk],
        "anonymous": [],
    }
    body = api["annotator"].get(f"/api/jobs/{mine.pk}/").json()
    assert (body["state"], body["title"], body["created_by"]) == ("queued", "Mine", "ann")
    assert body["item_errors"] == [{"item": "image 1", "image": 1, "message": "broken"}]
    assert problem(api["annotator"].get(f"/api/jobs/{other.pk}/"), 404)
    assert api["admin"].get(f"/api/jobs/{other.pk}/").status_code == 200


def test_admins_start_embedding_once(admin_api, admin, tiny_model):
    body = {"kind": "embed", "model": tiny_model}
    first, second = (admin_api.post("/api/jobs/", body) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    job = Job.objects.get()
    assert (job.created_by, job.params) == (admin, {"model": tiny_model})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "juggle"}, "kind"),
        ({"kind": "embed", "model": "nonsense"}, "model"),
        ({"kind": "embed", "model": "x" * 301}, "model"),
        ({"kind": "embed", "model": ["demo"]}, "model"),
    ],
)
def test_a_bad_job_names_its_field(admin_api, body, field):
    assert list(problem(admin_api.post("/api/jobs/", body), 400)) == [field]
    assert Job.objects.count() == 0


def test_admins_cancel_and_retry(admin_api):
    job = job_create(kind="embed", params={"model": "toy"})
    address = f"/api/jobs/{job.pk}"
    assert "Only a failed or canceled job" in problem(admin_api.post(f"{address}/retry/"), 409)
    assert admin_api.post(f"{address}/cancel/").json()["state"] == "canceled"
    assert "ended already" in problem(admin_api.post(f"{address}/cancel/"), 409)
    assert admin_api.post(f"{address}/retry/").json()["state"] == "queued"
    assert problem(admin_api.post("/api/jobs/0/cancel/"), 404)


@pytest.mark.parametrize("role", ["annotator", "reviewer"])
def test_others_start_cancel_and_retry_nothing(api, role, annotator):
    job = job_create(kind="embed", params={"model": "toy"}, created_by=annotator)
    assert problem(api[role].post("/api/jobs/", {"kind": "embed"}), 403)
    for verb in ("cancel", "retry"):
        assert problem(api[role].post(f"/api/jobs/{job.pk}/{verb}/"), 403)
    assert Job.objects.get().state == "queued"


def test_everybody_who_is_logged_in_reads_and_nobody_writes(corpus, api):
    for address in ("/api/search/?text=x", "/api/images/1/", "/api/species/", "/api/jobs/"):
        assert [api[role].get(address).status_code for role in api] == [200, 200, 200, 401]
        problem(api["anonymous"].get(address), 401)
        for method in ("put", "patch", "delete"):
            assert problem(getattr(api["admin"], method)(address, {}), 405)
        if "jobs" not in address:
            assert problem(api["admin"].post(address, {}), 405)
    assert api["anonymous"].post("/api/jobs/", {}).status_code == 401
