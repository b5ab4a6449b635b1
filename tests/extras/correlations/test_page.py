"""The page of rank correlations: figures, whose labels count, and what is refused."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evaluation.runs.services import run_score
from tests.conftest import api_of, client_of
from tests.evaluation.runs import scored_run
from tests.evaluation.test_run_page import admin, get, strong, texts, weak
from tests.releases.toy_release import toy_release

__all__ = ["admin", "strong", "weak"]

pytestmark = pytest.mark.django_db

TABLE = b"model,a,b\nx,1,3\ny,2,4\nz,3,1\n"


def test_between_measures_and_versions(weak, strong, admin, researcher):
    path = f"/releases/{weak.release_id}/correlations/"
    assert "Fewer than 3 runs" in texts(get(admin, path))
    middle = scored_run(weak.release, {2: [5, 2], 3: [3, 5, 1, 6]}, name="middle")
    second = toy_release(version=2, previous=weak.release)
    for run in (weak, strong, middle):
        run_score(run=run, release=second)
    context = get(admin, f"{path}?columns=AP@50&columns=P@1&columns=nDCG@50").context
    heat = context["between_measures"]
    assert context["runs"] == 3
    assert heat["names"] == ["mAP@50", "P@1", "nDCG@50"]
    cells = [[cell.text for cell in row] for _, row in heat["rows"]]
    # P@1 of the three: 0.5, 1, 0.5; one tie, so 2 concordant pairs over sqrt(3 * 2).
    assert cells == [["-", "0.82", "1.00"], ["0.82", "-", "0.82"], ["1.00", "0.82", "-"]]
    # What the paper's Table 5 calls R@k is hit@k; R@k is recall.
    usual = get(admin, path)
    assert usual.context["between_measures"]["names"] == [
        *("mAP@50", "nDCG@50", "MRR@50"),
        *("hit@1", "hit@5", "hit@10", "Rprec", "mAP@R", "R@1", "R@5", "R@10"),
    ]
    assert "What that table calls R@k is hit@k here" in texts(usual)
    versions = context["between_versions"]
    assert versions["names"] == ["v1", "v2"]
    assert versions["rows"][0][1][1].text == "1.00"
    assert versions["most"] == 3
    # Another version only for who sees the labels of its split.
    toy_release(version=3, previous=second, test_labels="hidden")
    for user, split, names in (
        (admin, "test", ["v1", "v2", "v3"]),
        (researcher, "test", ["v1", "v2"]),
        (researcher, "val", ["v1", "v2", "v3"]),
    ):
        assert get(user, f"{path}?split={split}").context["between_versions"]["names"] == names
    client = client_of(admin)
    sent = client.post(path, {"scores": SimpleUploadedFile("t.csv", TABLE)})
    assert sent.context["between_scores"]["rows"][0][1][1].text == "−0.33"
    assert "3 models" in texts(sent)
    bad = client.post(path, {"scores": SimpleUploadedFile("t.csv", b"model,a,b\nx,1,e\n")})
    assert "t.csv, line 2, b" in texts(bad)
    assert "between_scores" not in bad.context
    # The API gives the same.
    api, query = api_of(admin), "columns=AP@50&columns=P@1&split=test"
    given = api.get(f"/api{path}?{query}").json()
    assert given["measures"]["names"] == ["mAP@50", "P@1"]
    assert given["measures"]["taus"][0][1] == pytest.approx((2 / 3) ** 0.5)
    assert given["measures"]["counts"] == [[3, 3], [3, 3]]
    assert given["versions"]["names"] == ["v1", "v2", "v3"]
    assert api_of(researcher).get(f"/api{path}?split=test").json()["versions"]["names"][2:] == []
    assert api.get(f"/api{path}?columns=Luck@50").status_code == 404
    sent = api.post("/api/correlate/", {"scores": SimpleUploadedFile("t.csv", TABLE)}, "multipart")
    assert sent.json()["taus"][0][1] == pytest.approx(-1 / 3)
    bad = api.post(
        "/api/correlate/", {"scores": SimpleUploadedFile("t.csv", b"model,a\n")}, "multipart"
    )
    assert bad.status_code == 400
    assert "t.csv, line 1" in bad.content.decode()


def test_nonsense_in_its_address_finds_nothing(weak, admin):
    client, path = client_of(admin), f"/releases/{weak.release_id}/correlations/"
    for name, value in (("task", "juggling"), ("split", "train"), ("columns", "Luck@50")):
        assert client.get(path, {name: value}).status_code == 404
        assert client.get(path, {name: ""}).status_code == 200


def test_the_analyses_link_to_it_once_there_are_runs_to_compare(weak, strong, admin):
    path = f"/releases/{weak.release_id}/"
    assert "Do the measures rank" not in texts(get(admin, f"{path}analysis/?split=test"))
    scored_run(weak.release, {2: [5, 2], 3: [3, 5, 1, 6]}, name="middle")
    link = f'href="{path}correlations/?task=full&amp;split=test">Do the measures rank'
    assert link in texts(get(admin, f"{path}analysis/?split=test"))
