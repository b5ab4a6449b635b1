"""Looking whether the files of images that stay where they are are there."""

import hashlib
import io

import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.images.files import roots_load
from retrieval.importing import checks as image_checks
from retrieval.importing.checks import RootsUnavailable, image_contents_read, images_check
from tests.retrieval.making import embed_rows, image_row, jpeg
from tests.retrieval.rooted import folder_root, rooted

pytestmark = pytest.mark.django_db

COLOURS = ("red", "green", "blue", "white", "black", "teal")


@pytest.fixture
def root(store, tmp_path):
    """Six images of 60 × 50 pixels, recorded as 40 × 30, and one of the store."""
    files = {f"{n}.jpg": jpeg(colour, (60, 50)) for n, colour in enumerate(COLOURS, start=1)}
    made = folder_root(tmp_path / "data", files)
    for number in range(1, 7):
        rooted(number, made, f"{number}.jpg", dataset="odd" if number % 2 else "even")
    image_row(50)
    return made


def known():
    return sorted(Image.objects.exclude(sha256="").exclude(root=None).values_list("pk", flat=True))


def run(*arguments):
    output = io.StringIO()
    call_command("check_images", *arguments, stdout=output)
    return output.getvalue()


def test_what_files_are_is_kept(root):
    report = images_check()
    assert (report.checked, report.filled, report.changed, report.problems) == (6, 6, 0, 0)
    assert report.last == 6
    image = Image.objects.get(pk=2)
    data = jpeg("green", (60, 50))
    assert image.sha256 == hashlib.sha256(data).hexdigest()
    assert (image.width, image.height, image.size_bytes) == (60, 50, len(data))
    assert Image.objects.get(pk=50).sha256 == f"{50:064x}"


def test_files_that_are_gone_or_broken_are_named_and_stay_unknown(root, tmp_path):
    (tmp_path / "data/2.jpg").unlink()
    (tmp_path / "data/5.jpg").write_bytes(b"no image")
    problems = []
    report = images_check(on_problem=lambda *problem: problems.append(problem))
    assert (report.checked, report.filled, report.problems) == (6, 4, 2)
    assert problems == [
        (2, "2.jpg", "The image's file is gone from its folder."),
        (5, "5.jpg", "The file is not an image of a known format."),
    ]
    assert known() == [1, 3, 4, 6]


def test_it_goes_on_where_it_was(root, monkeypatch):
    monkeypatch.setattr(image_checks, "BATCH", 2)
    seen = []

    def stop(report, total):
        seen.append((report.checked, report.last, total))
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        images_check(progress=stop)
    assert seen == [(2, 2, 6), (4, 4, 6)]
    assert known() == [1, 2, 3, 4]
    report = images_check()
    assert (report.checked, report.filled) == (2, 2)
    assert images_check(again=True, after=4).checked == 2


def test_a_file_that_was_replaced_is_found_again_and_loses_its_embeddings(
    root, tmp_path, toy_model
):
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0]})
    images_check()
    assert Embedding.objects.count() == 2
    address = Image.objects.get(pk=2).url
    (tmp_path / "data/2.jpg").write_bytes(jpeg("orange", (20, 10)))
    assert images_check().checked == 0
    report = images_check(again=True)
    assert (report.checked, report.filled, report.changed) == (6, 0, 1)
    image = Image.objects.get(pk=2)
    assert (image.width, image.height, image.url != address) == (20, 10, True)
    assert list(Embedding.objects.values_list("image_id", flat=True)) == [1]


def test_an_image_that_was_imported_anew_meanwhile_is_left_alone(root, monkeypatch):
    def meanwhile():
        roots_load()
        Image.objects.filter(pk=3).update(sha256="a" * 64)

    monkeypatch.setattr(image_checks, "roots_load", meanwhile)
    assert images_check().filled == 5
    assert Image.objects.get(pk=3).sha256 == "a" * 64


def test_a_place_that_is_away_ends_the_look(root, tmp_path):
    (tmp_path / "data").rename(tmp_path / "unmounted")
    with pytest.raises(RootsUnavailable, match="isn't there now"):
        images_check()
    with pytest.raises(CommandError, match="again with --after 3 when"):
        run("--quiet", "--after", "3")


def test_contents_that_are_needed_are_read(root, tmp_path):
    (tmp_path / "data/2.jpg").unlink()
    image_contents_read(image_ids=[1, 2, 50, 999])
    assert known() == [1]
    image_contents_read(image_ids=[])


def test_the_command_reports(root, tmp_path):
    said = run("--quiet", "--dataset", "odd")
    assert said == "3 images checked: 3 with a new SHA-256, 0 changed, 0 not readable\n"
    (tmp_path / "data/4.jpg").unlink()
    output = io.StringIO()
    with pytest.raises(CommandError, match="1 not readable"):
        call_command("check_images", "--quiet", stdout=output)
    assert "image 4 (4.jpg): The image's file is gone from its folder.\n" in output.getvalue()
    with pytest.raises(CommandError, match="no data set “none”"):
        run("--dataset", "none")
