"""Releases and multimodal models over images that stay where they are."""

import hashlib

import pandas as pd
import pyarrow.parquet as pq
import pytest

from core.jobs.models import JobItemError
from evaluation.reranking.multimodal.models import ModelAnswer
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from releases.making import services
from releases.making.images import released_image_bytes, released_images, web_address
from releases.making.services import release_verify
from retrieval.corpus.models import Image, ImageRoot
from retrieval.images.files import RootUnavailable
from retrieval.images.storage import image_store
from tests.evaluation.chat_server import ChatServer
from tests.evaluation.rerank_toy import (
    begun,
    bytes_of,
    expected_order,
    first_stage,
    order_of,
    small_release,
    worked,
)
from tests.releases.toy import make_query
from tests.retrieval.making import image_row, jpeg
from tests.retrieval.rooted import folder_root, rooted

COLOURS = ("red", "green", "blue", "gold", "black", "teal")


def sha256_of(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def folder(db, var_dir, tmp_path):
    """Six images whose content nobody knows, and the folder of their files."""
    files = {f"{n}.jpg": jpeg(color) for n, color in enumerate(COLOURS, start=1)}
    root = folder_root(tmp_path / "data", files)
    for number in range(1, 7):
        rooted(number, root, f"{number}.jpg", license="CC BY 4.0", rights_holder="Ada")
    return tmp_path / "data"


@pytest.fixture
def judge_all(folder, annotator):
    """A completed query to which each image is relevant."""
    query = make_query(30, "two storks on a nest ", state=Query.State.COMPLETE)
    for number in range(1, 7):
        Judgment.objects.create(
            query=query, image_id=number, annotator=annotator, relevance="relevant"
        )


def test_a_released_image_is_found_where_it_is(folder):
    data = jpeg("red")
    assert released_image_bytes(1, "1.jpg", "") == data
    assert released_image_bytes(1, "1.jpg", sha256_of(data)) == data
    Image.objects.filter(pk=1).update(sha256=sha256_of(data))
    assert released_image_bytes(1, "1.jpg", "") == data
    # One of the store by its content, also when it came there later.
    stored = image_store(jpeg("pink"))
    assert released_image_bytes(99, "was/elsewhere.jpg", stored.sha256) == jpeg("pink")
    stored = image_store(jpeg("red"))
    Image.objects.filter(pk=1).update(sha256=stored.sha256, root=None)
    (folder / "1.jpg").unlink()
    assert released_image_bytes(1, "1.jpg", "") == jpeg("red")
    assert released_image_bytes(1, "1.jpg", "0" * 64) is None
    # A folder that is away doesn't make a release without images.
    folder.rename(folder.with_name("unmounted"))
    with pytest.raises(RootUnavailable):
        released_image_bytes(2, "2.jpg", "")


def test_another_image_is_not_taken_for_a_released_one(folder):
    assert released_image_bytes(1, "1.jpg", "0" * 64) is None
    assert released_image_bytes(1, "2.jpg", "") is None
    assert released_image_bytes(99, "1.jpg", "") is None
    image_row(7, file_name="7.jpg")
    assert released_image_bytes(7, "7.jpg", "") is None
    (folder / "2.jpg").unlink()
    assert released_image_bytes(2, "2.jpg", "") is None


def test_a_release_with_images_has_those_that_stay_where_they_are(folder, judge_all):
    (folder / "5.jpg").unlink()
    Image.objects.filter(pk=1).update(sha256=sha256_of(jpeg("red")))
    Image.objects.filter(pk=2).update(sha256="0" * 64)
    release = services.release_export(
        name="v1",
        directory=folder.parent / "out",
        options={"include_images": True, "test_labels": "public"},
        new=True,
    )
    shards = (folder.parent / "out/huggingface/images").rglob("*.parquet")
    rows = [row for path in shards for row in pq.read_table(path).to_pylist()]
    assert {row["image_id"]: row["image"]["bytes"] for row in rows} == {
        number: jpeg(COLOURS[number - 1]) for number in (1, 3, 4, 6)
    }
    refused = pd.read_csv(folder.parent / "out/huggingface/refused_images.csv")
    assert refused["image_id"].tolist() == [2, 5]
    assert set(refused["reason"]) == {"the image's file isn't here or cannot be read"}
    assert release_verify(release=release) == []
    (folder / "3.jpg").write_bytes(jpeg("orange"))
    names = {finding.name for finding in release_verify(release=release)}
    assert any("huggingface/images" in name for name in names)


def test_an_image_has_an_address_where_it_is_public(folder):
    there = "https://inaturalist-open-data.s3.amazonaws.com"
    for file_name, location, address in (
        ("photos/7/large.jpg", "/data/inat", ""),
        ("photos/7/large.jpg", "s3://mine/photos", ""),
        ("7/a b.jpg", "s3://inaturalist-open-data/photos", f"{there}/photos/7/a%20b.jpg"),
        ("photos/7/large.jpg", "s3://inaturalist-open-data-copy", ""),
        ("https://example.org/7.jpg", "/data/inat", "https://example.org/7.jpg"),
        ("https:/example.org/7.jpg", "", ""),
    ):
        assert web_address(file_name, location) == address
    bucket = ImageRoot.objects.create(location="s3://inaturalist-open-data/photos")
    Image.objects.filter(pk=2).update(root=bucket, file_name="2/original.jpg")
    assert [one.address for one in released_images([1, 2])] == [
        "",
        f"{there}/photos/2/original.jpg",
    ]


@pytest.fixture
def server():
    with ChatServer() as started:
        yield started


def test_a_model_is_asked_about_images_where_they_are(folder, server):
    release = small_release()
    run = begun(release, first_stage(release), 4, server.url)
    job = worked(run)
    assert (job.state, job.error, job.done, job.failed) == ("done", "", 12, 0)
    assert order_of(run) == expected_order(4)
    assert {one.jpeg for one in server.requests} == {bytes_of(number) for number in range(1, 7)}
    # Their content is known now, and so are the answers again.
    assert not Image.objects.filter(sha256="").exists()
    assert set(ModelAnswer.objects.values_list("image_sha256", flat=True)) == {
        sha256_of(jpeg(color)) for color in COLOURS
    }


def test_an_image_that_is_gone_fails_alone_and_says_so(folder, server, settings):
    settings.MULTIMODAL_MAX_FAILURES = 30
    (folder / "3.jpg").unlink()
    (folder / "5.jpg").write_bytes(b"no picture")
    release = small_release()
    job = worked(begun(release, first_stage(release), 3, server.url))
    assert (job.state, job.done, job.failed) == ("done", 7, 2)
    assert sorted(JobItemError.objects.values_list("message", flat=True)) == [
        "The file is not an image of a known format.",
        "The image's file is gone from its folder.",
    ]
