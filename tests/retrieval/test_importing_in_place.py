"""Images that an import leaves where they are."""

import threading

import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import Image, ImageRoot
from retrieval.embedding.models import Embedding
from retrieval.images.roots import image_root_get_or_create
from retrieval.importing.records import ImportRefused
from retrieval.importing.services import import_images
from tests.retrieval.making import coco, coco_image, embed_rows, image_row, jpeg

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def figures(report):
    return report.added, report.updated, report.skipped, report.refused_count


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def bucket(db):
    """A place that nobody could read a file at."""
    return ImageRoot.objects.create(location="s3://bucket/inat24")


def test_what_the_records_say_is_taken_and_no_file_is_looked_for(data, store, bucket):
    images = [coco_image(n, file_name=f"elsewhere/{n}.{end}", width=30 + n, height=20)
              for n, end in enumerate(["jpg", "JPEG", "png", "tif", "webp"], start=1)]  # fmt: skip
    path = coco(data, images=images)
    assert figures(import_images(path=path, root=bucket)) == (5, 0, 0, 0)
    rows = Image.objects.order_by("pk").values_list(
        "pk", "source_id", "root__location", "file_name", "sha256", "format", "width", "height",
        "size_bytes",
    )  # fmt: skip
    kinds = ["JPEG", "JPEG", "PNG", "TIFF", "WEBP"]
    assert list(rows) == [
        (n, str(n), "s3://bucket/inat24", images[n - 1]["file_name"], "", kind, 30 + n, 20, 0)
        for n, kind in enumerate(kinds, start=1)
    ]
    first = Image.objects.select_related("species").get(pk=1)
    assert first.species.scientific_name == "Ursus arctos"
    assert (first.license, first.rights_holder) == ("CC BY 4.0", "Ada")
    assert (first.latitude, first.longitude, first.location_uncertainty) == (52.5, 13.4, 12)
    assert first.observed_at.isoformat() == "2021-05-30T12:05:00+00:00"
    assert not store.exists()


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"width": None}, "width", "is missing; an image that is left in place needs its size"),
        ({"height": None}, "height", "is missing; an image that is left in place"),
        ({"width": 0}, "width", "is missing; an image that is left in place needs its size"),
        ({"height": 2**31}, "height", "is missing; an image that is left in place"),
        ({"width": 20_000, "height": 20_000}, "width", "20000 × 20000 pixels; 178956970"),
        ({"file_name": "a/notes.txt"}, "file_name", "not that of a known image format"),
        ({"file_name": "jpg"}, "file_name", "not that of a known image format"),
        ({"file_name": "/etc/passwd.jpg"}, "file_name", "must be a path below the folder"),
        ({"file_name": "../a.jpg"}, "file_name", "must be a path below the folder"),
        ({"file_name": "a/../../b.jpg"}, "file_name", "must be a path below the folder"),
        ({"file_name": "a\0.jpg"}, "file_name", "no control characters"),
    ],
)
def test_a_bad_record_is_named_and_the_rest_goes_on(data, bucket, fields, field, says):
    images = [coco_image(1), coco_image(2, **fields), coco_image(3, file_name=".a..b/..c.jpg")]
    report = import_images(path=coco(data, images=images), root=bucket)
    assert figures(report) == (2, 0, 0, 1)
    assert {(one.record, one.field) for one in report.refused} == {("image 2", field)}
    assert says in report.refused[-1].reason
    assert set(Image.objects.values_list("pk", flat=True)) == {1, 3}


def test_refusals_are_told_on_the_callers_thread_and_all_counted(data, bucket, monkeypatch):
    monkeypatch.setattr("retrieval.importing.services.MOST_REFUSALS", 3)
    monkeypatch.setattr("retrieval.importing.files.BLOCK_IN_PLACE", 2)
    monkeypatch.setattr("retrieval.importing.services.BATCH_IN_PLACE", 4)
    images = [coco_image(n, width=None if n % 3 else 40, rights_holder=7 if n % 5 == 0 else "")
              for n in range(1, 31)]  # fmt: skip
    threads, seen = [], []
    report = import_images(
        path=coco(data, images=images),
        root=bucket,
        progress=lambda done, total: seen.append((done, total)),
        on_refusal=lambda refusal: threads.append(threading.get_ident()),
    )
    assert (*figures(report), report.left_out_count) == (10, 0, 0, 20, 6)
    assert len(report.refused) == 3
    assert threads == [threading.get_ident()] * 26
    assert (seen[0], seen[-1]) == ((0, 30), (30, 30))
    assert seen == sorted(seen)


def test_a_folder_is_refused_in_words(data, bucket):
    coco(data)
    with pytest.raises(ImportRefused, match="Images that are left in place need their sizes"):
        import_images(path=data, root=bucket)
    assert Image.objects.count() == 0


def embedded():
    return set(Embedding.objects.values_list("image_id", flat=True))


def contents():
    return list(Image.objects.order_by("pk").values_list("sha256", "size_bytes", "format",
                                                         "width", "height"))  # fmt: skip


def test_what_is_known_of_a_content_stays_until_another_file_is_named(data, bucket, toy_model):
    path = coco(data)
    import_images(path=path, root=bucket)
    # As when the files were looked at once, and turned out to be others than their records say.
    known = [(f"{number:064x}", 99, "PNG", 7, 8) for number in (1, 2, 3)]
    for number, (sha256, size, kind, width, height) in enumerate(known, start=1):
        Image.objects.filter(pk=number).update(
            sha256=sha256, size_bytes=size, format=kind, width=width, height=height
        )
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0], 3: [0, 0, 1]})
    assert figures(import_images(path=path, root=bucket)) == (0, 0, 3, 0)
    assert contents() == known
    images = [
        coco_image(1, rights_holder="Grace"),
        coco_image(2, file_name="train/two.jpg"),
        coco_image(3, width=41),
    ]
    report = import_images(path=coco(data, images=images), root=bucket)
    assert figures(report) == (0, 2, 1, 0)
    assert contents() == [known[0], ("", 0, "JPEG", 40, 30), known[2]]
    assert Image.objects.get(pk=1).rights_holder == "Grace"
    assert embedded() == {1, 3}


def test_of_files_that_nobody_read_path_and_size_tell_one_from_another(data, bucket, toy_model):
    import_images(path=coco(data), root=bucket)
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0], 3: [0, 0, 1]})
    images = [
        coco_image(1, latitude=None),
        coco_image(2, file_name="train/two.jpg"),
        coco_image(3, width=41),
    ]
    report = import_images(path=coco(data, images=images), root=bucket)
    assert figures(report) == (0, 3, 0, 0)
    assert [row[3:] for row in contents()] == [(40, 30), (40, 30), (41, 30)]
    assert embedded() == {1}


def test_images_may_move_to_another_place_and_into_the_store(data, bucket, toy_model):
    path = coco(data)
    import_images(path=path, root=bucket)
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0], 3: [0, 0, 1]})
    there = image_root_get_or_create(location=str(data))
    assert figures(import_images(path=path, root=there)) == (0, 3, 0, 0)
    assert set(Image.objects.values_list("root__location", "sha256")) == {(str(data), "")}
    # The same images, as far as their records tell: their vectors are those of the files.
    assert figures(import_images(path=path)) == (0, 3, 0, 0)
    assert Image.objects.filter(root=None).exclude(sha256="").count() == 3
    assert embedded() == {1, 2, 3}
    hashes = dict(Image.objects.values_list("pk", "sha256"))
    assert figures(import_images(path=path, root=there)) == (0, 3, 0, 0)
    assert dict(Image.objects.values_list("pk", "sha256")) == hashes
    (data / "train/2.jpg").write_bytes(jpeg("yellow"))
    assert figures(import_images(path=path)) == (0, 3, 0, 0)
    assert embedded() == {1, 3}


def test_ids_that_are_taken_give_way_batch_by_batch(data, bucket, monkeypatch):
    monkeypatch.setattr("retrieval.importing.files.BLOCK_IN_PLACE", 2)
    monkeypatch.setattr("retrieval.importing.services.BATCH_IN_PLACE", 2)
    for number in (4, 5, 80):
        image_row(number)
    images = [coco_image(n) for n in (1, 2, 3, 4, 5, 6, 7, 8)] + [coco_image(0, id="a text")]
    path = coco(data, images=images, annotations=[])
    assert figures(import_images(path=path, root=bucket)) == (9, 0, 0, 0)
    ids = dict(Image.objects.filter(dataset="data/train").values_list("source_id", "pk"))
    assert ids == {"1": 1, "2": 2, "3": 3, "4": 81, "5": 82, "6": 6, "7": 7, "8": 8, "a text": 83}
    # Some are there, some are new, some have changed: in one batch and in another order.
    Image.objects.filter(source_id__in=["2", "7"]).delete()
    images = [coco_image(n, license=None if n == 4 else 1) for n in (8, 7, 4, 2, 9, 1)]
    path = coco(data, images=images, annotations=[])
    assert figures(import_images(path=path, root=bucket)) == (3, 1, 2, 0)
    ids = dict(Image.objects.filter(dataset="data/train").values_list("source_id", "pk"))
    assert {name: ids[name] for name in ("2", "4", "7", "9")} == {"2": 2, "4": 81, "7": 7, "9": 9}
    assert Image.objects.get(source_id="4", dataset="data/train").license == ""


def test_texts_moments_and_numbers_come_out_as_they_went_in(data, bucket):
    hard = ["back\\slash", "\\N", "tab\there", "two\nlines", "“Ünï” 🐻", "", "  blanks   inside "]
    moments = ["1999-12-31T23:59:59.999999Z", "2000-01-01", "0001-01-02T00:00:00.000001Z",
               "2024-02-29 23:30:00-12:45", "9999-12-30 00:00:00.5+00:00", None, ""]  # fmt: skip
    numbers = [0, -0.0, 1e-320, -89.99999999999999, 33.1, None, 90]
    images = [
        coco_image(
            n, id=f"id\\{n}", file_name=f"a\\b/{n} ü.jpg", rights_holder=text, date=moment,
            latitude=number, longitude=number, location_uncertainty=number and abs(number),
        )
        for n, (text, moment, number) in enumerate(zip(hard, moments, numbers, strict=True))
    ]  # fmt: skip
    path = coco(data, images=images, annotations=[])
    name = "a\\name\\Nof “a” set"
    assert figures(import_images(path=path, dataset=name, root=bucket)) == (7, 0, 0, 0)
    rows = Image.objects.filter(dataset=name, species=None).order_by("pk")
    assert [row.source_id for row in rows] == [f"id\\{n}" for n in range(7)]
    assert [row.file_name for row in rows] == [f"a\\b/{n} ü.jpg" for n in range(7)]
    assert [row.rights_holder for row in rows] == [" ".join(text.split()) for text in hard]
    assert [row.observed_at and row.observed_at.isoformat() for row in rows] == [
        "1999-12-31T23:59:59.999999+00:00",
        "2000-01-01T00:00:00+00:00",
        "0001-01-02T00:00:00.000001+00:00",
        "2024-03-01T12:15:00+00:00",
        "9999-12-30T00:00:00.500000+00:00",
        None,
        None,
    ]
    assert [row.latitude for row in rows] == numbers
    assert [row.location_uncertainty for row in rows] == [
        number and abs(number) for number in numbers
    ]
    assert figures(import_images(path=path, dataset=name, root=bucket)) == (0, 0, 7, 0)


def test_the_command_leaves_images_below_the_files_folder_or_elsewhere(data, tmp_path, capsys):
    path = coco(data)
    call_command("import_images", str(path), "--in-place", "--quiet")
    assert capsys.readouterr().out == "data/train: 3 added, 0 updated, 0 skipped, 0 refused\n"
    assert set(Image.objects.values_list("root__location", "sha256")) == {(str(data), "")}
    other = tmp_path / "other"
    other.mkdir()
    call_command("import_images", str(path), "--root", str(other))
    said = capsys.readouterr()
    assert said.out == "data/train: 0 added, 3 updated, 0 skipped, 0 refused\n"
    assert "checking the file: 100%" in said.err
    assert set(Image.objects.values_list("root__location", flat=True)) == {str(other)}
    with pytest.raises(CommandError, match="not allowed with"):
        call_command("import_images", str(path), "--in-place", "--root", str(other))
    with pytest.raises(CommandError, match="nowhere"):
        call_command("import_images", str(path), "--root", str(tmp_path / "nowhere"))
    with pytest.raises(CommandError, match="Images that are left in place need their sizes"):
        call_command("import_images", str(data), "--in-place")
