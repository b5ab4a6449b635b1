"""What is said of a data set: its findings, and marks that images keep through later imports."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from core.errors import Conflict, Missing
from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from core.locks import lock_key, try_session_lock
from retrieval.corpus.models import DatasetMark, Image
from retrieval.datasets import selectors, services
from retrieval.datasets.selectors import Finding, dataset_figures, found_images, texts_kept_since
from retrieval.datasets.services import dataset_mark
from retrieval.importing.services import import_images
from tests.retrieval.making import image_row
from tests.retrieval.test_source_words import table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store", "messages")]

BY = "https://creativecommons.org/licenses/by/4.0/"
PAGE = "/data-sets/show/?dataset=old"
HEADER = "file_name,scientific_name,license,license_url,latitude,longitude"
#: Images of an earlier version: the fields of each, and which finding it has.
EARLIER = [
    ({"license": "CC BY", "license_url": BY}, {Finding.LICENSE}),
    ({"license": "Public domain"}, {Finding.LICENSE}),
    # An older file that was imported again has nothing but the name either.
    ({"license": "CC BY-NC", "license_text": "CC BY-NC"}, {Finding.LICENSE}),
    ({"license": "CC BY", "license_text": "with attribution"}, set()),
    ({"license": "cc-by"}, set()),
    ({"license": "by permission"}, set()),
    ({"source_id": "a.jpg", "file_name": "a.jpg", "latitude": 1.0, "longitude": 2.0},
     {Finding.LOCATION}),
    ({"source_id": "b.jpg", "file_name": "b.jpg", "latitude": 1.0, "longitude": 2.0,
      "coordinates_obscured": True}, set()),
    ({"source_id": "c.jpg", "file_name": "c.jpg"}, set()),
    ({"latitude": 1.0, "longitude": 2.0}, set()),
]  # fmt: skip


@pytest.fixture
def old() -> list[Image]:
    """The images of EARLIER, and one like the first that is of this version."""
    made = [
        image_row(number, **{"dataset": "old", "source_id": f"s{number}", **fields})
        for number, (fields, _) in enumerate(EARLIER, start=1)
    ]
    before = texts_kept_since()
    assert before is not None
    Image.objects.update(created_at=before - timedelta(days=1))
    image_row(99, dataset="old", source_id="s99", license="CC BY")
    image_row(100, dataset="new", source_id="s100", license="CC0 1.0")
    return made


def run(job: Job | None) -> Job:
    assert job is not None
    while job_slice_run(job_id=job.pk) is Slice.MORE:
        pass
    job.refresh_from_db()
    assert job.state == "done"
    return job


def test_figures_and_findings_of_each_data_set(old: list[Image]) -> None:
    new, figures = dataset_figures()
    assert (new.dataset, new.images, new.license_read, new.exact_locations) == ("new", 1, 0, 0)
    assert (figures.dataset, figures.images, figures.mark.pk) == ("old", 11, None)
    assert (figures.license_read, figures.exact_locations) == (3, 1)
    counted = [(one.license, one.images) for one in figures.licenses]
    once = ("CC BY-NC", "Public domain", "by permission")
    assert counted == [("", 4), ("CC BY", 3), *((name, 1) for name in once)]
    assert figures.more_licenses == 1
    assert dataset_figures("old")[0].licenses == figures.licenses
    for finding in Finding:
        wanted = [n for n, (_, found) in enumerate(EARLIER, start=1) if finding in found]
        found, after = [], None
        while page := found_images("old", finding, after=after, limit=2):
            found += [image.pk for image in page.images]
            if (after := page.after) is None:
                break
        assert found == wanted
    with pytest.raises(Missing):
        dataset_figures("none")


def test_a_mark_takes_the_license_and_keeps_its_words(
    old: list[Image], admin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "CHANGED_AT_ONCE", 4)
    mark, job = dataset_mark(dataset="old", by=admin, license_unknown=True)
    assert (mark.license_unknown, mark.locations_obscured) == (True, False)
    assert run(job).result == {"changed": 7}
    images = Image.objects.filter(dataset="old").order_by("pk")
    assert set(images.values_list("license", "license_url")) == {("", "")}
    assert list(images.exclude(license_text="").values_list("license_text", flat=True)) == [
        f"CC BY, {BY} (read earlier from the source)",
        "Public domain (read earlier from the source)",
        "CC BY-NC",
        "with attribution, CC BY",
        "cc-by (read earlier from the source)",
        "by permission (read earlier from the source)",
        "CC BY (read earlier from the source)",
    ]
    assert Image.objects.get(dataset="new").license == "CC0 1.0"
    assert dataset_figures("old")[0].license_read == 0
    # Once more it does nothing.
    assert dataset_mark(dataset="old", by=admin, license_unknown=True) == (mark, None)

    mark, job = dataset_mark(dataset="old", by=admin, locations_obscured=True)
    assert (mark.license_unknown, run(job).result) == (True, {"changed": 2})
    placed = Image.objects.filter(latitude__isnull=False)
    assert set(placed.values_list("coordinates_obscured", flat=True)) == {True}


def test_a_mark_survives_a_second_import_and_once_taken_back_the_next_reads_again(
    tmp_path: Path, admin: Any
) -> None:
    rows = [f"a.jpg,Rana arvalis,CC BY,{BY},1,2", "b.jpg,Rana arvalis,CC BY,,,"]
    path = table(tmp_path, HEADER, *rows)
    import_images(path=path, dataset="old")

    def stored() -> list[tuple[Any, ...]]:
        fields = ("license", "license_url", "license_text", "coordinates_obscured")
        return list(Image.objects.order_by("source_id").values_list(*fields))

    read = [("CC BY", BY, "CC BY", False), ("CC BY", "", "CC BY", False)]
    assert stored() == read
    _, job = dataset_mark(dataset="old", by=admin, license_unknown=True, locations_obscured=True)
    run(job)
    marked = [("", "", f"CC BY, {BY}", True), ("", "", "CC BY", False)]
    assert stored() == marked
    for _ in range(2):
        assert import_images(path=path, dataset="old").skipped == 2
        assert stored() == marked
    table(tmp_path, HEADER, *rows, "c.jpg,Rana arvalis,CC0,,3,4")
    assert import_images(path=path, dataset="old").added == 1
    assert stored()[2] == ("", "", "CC0", True)

    taken = {"license_unknown": False, "locations_obscured": False}
    assert dataset_mark(dataset="old", by=admin, **taken)[1] is None
    assert stored()[:2] == marked
    import_images(path=path, dataset="old")
    assert stored() == [*read, ("CC0", "", "CC0", False)]


def test_nothing_is_marked_while_images_are_imported_or_after_it_is_taken_back(
    old: list[Image], admin: Any
) -> None:
    with (
        try_session_lock(lock_key("importing"), shared=True),
        pytest.raises(Conflict, match="being imported"),
    ):
        dataset_mark(dataset="old", by=admin, license_unknown=True)
    with pytest.raises(Missing):
        dataset_mark(dataset="none", by=admin, license_unknown=True)
    assert not DatasetMark.objects.exists()
    _, job = dataset_mark(dataset="old", by=admin, license_unknown=True)
    dataset_mark(dataset="old", by=admin, license_unknown=False)
    assert run(job).result == {"changed": 0}
    assert Image.objects.filter(dataset="old").exclude(license="").count() == 7


def test_admins_alone_see_and_mark_data_sets(
    old: list[Image],
    clients: dict[str, Client],
    admin_api: APIClient,
    reviewer_api: APIClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for role in ("annotator", "reviewer"):
        for page in ("/data-sets/", PAGE):
            assert clients[role].get(page).status_code == 403
        assert clients[role].post(PAGE, {"license_unknown": "yes"}).status_code == 403
        assert b'"/data-sets/"' not in clients[role].get("/corpus/").content
    body = {"dataset": "old", "license_unknown": True}
    assert reviewer_api.post("/api/data-sets/mark/", body).status_code == 403
    for name in ("figures", "found", "releases"):
        assert reviewer_api.get(f"/api/data-sets/{name}/", {"dataset": "old"}).status_code == 403

    client = clients["admin"]
    assert '"/data-sets/"' in client.get("/corpus/").content.decode()
    page = client.get("/data-sets/").content.decode()
    assert "/data-sets/remove/?dataset=old" in page
    assert "by permission" in page
    page = client.get(PAGE).content.decode()
    for shown in ("/images/1/", "/images/2/", "/images/3/", "No release has one of its images"):
        assert shown in page
    assert "/images/4/" not in page
    page = client.get(f"{PAGE}&finding=location").content.decode()
    assert ("/images/7/" in page, "/images/1/" in page) == (True, False)
    assert client.get("/data-sets/show/?dataset=none").status_code == 404
    # Of a large corpus it counts where that is asked for.
    monkeypatch.setattr("retrieval.datasets.views.COUNTED_AT_ONCE", 5)
    for address, link in (("/data-sets/", "?count"), (PAGE, "old&amp;count")):
        asked = client.get(address).content.decode()
        assert (link in asked, "by permission" in asked) == (True, False)
        sign = "&" if "?" in address else "?"
        assert "by permission" in client.get(f"{address}{sign}count").content.decode()

    answer = client.post(PAGE, {"license_unknown": "yes"})
    job = Job.objects.get()
    assert answer["Location"] == PAGE
    assert f'data-job="{job.pk}"' in client.get(PAGE).content.decode()
    run(job)
    page = client.get(PAGE).content.decode()
    assert "Take back" in page
    assert "license unknown" in client.get("/data-sets/?count").content.decode()
    assert client.post(PAGE, {"license_unknown": "no"})["Location"] == PAGE
    log = client.get("/log/").content.decode()
    for said in ("Set the license to unknown: 7 images", "Took back that the license is unknown"):
        assert said in log
    assert "data set old" in log


def test_the_api_does_what_the_pages_do(old: list[Image], admin_api: APIClient) -> None:
    [figures] = admin_api.get("/api/data-sets/figures/", {"dataset": "old"}).json()["results"]
    assert (figures["images"], figures["license_read"], figures["exact_locations"]) == (11, 3, 1)
    assert figures["mark"] == {"license_unknown": False, "locations_obscured": False}
    assert len(admin_api.get("/api/data-sets/figures/").json()["results"]) == 2
    found = admin_api.get("/api/data-sets/found/", {"dataset": "old", "finding": "location"})
    assert [image["id"] for image in found.json()["results"]] == [7]
    body = {"dataset": "old", "locations_obscured": True}
    answer = admin_api.post("/api/data-sets/mark/", body).json()
    assert answer["mark"] == {"license_unknown": False, "locations_obscured": True}
    run(Job.objects.get(pk=answer["job"]))
    [figures] = admin_api.get("/api/data-sets/figures/", {"dataset": "old"}).json()["results"]
    assert figures["exact_locations"] == 0
    assert admin_api.get("/api/data-sets/releases/", {"dataset": "old"}).json() == {"results": []}
    for address in ("figures/?dataset=none", "found/?dataset=none&finding=license"):
        assert admin_api.get(f"/api/data-sets/{address}").status_code == 404


def test_without_the_moment_nothing_is_found(
    old: list[Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "texts_kept_since", lambda: None)
    [figures] = dataset_figures("old")
    assert (figures.license_read, figures.exact_locations) == (0, 0)
