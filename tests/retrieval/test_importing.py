import json
import os

import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import Image, Species, SpeciesName
from retrieval.embedding.models import Embedding
from retrieval.images.storage import thumbnail_path
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


def test_images_are_stored_with_all_that_is_known(data):
    report = import_images(path=coco(data))
    assert figures(report) == (3, 0, 0, 0)
    image = Image.objects.select_related("species").get(pk=1)
    assert (image.dataset, image.source_id, image.file_name) == ("data/train", "1", "train/1.jpg")
    assert (image.width, image.height, image.format) == (40, 30, "JPEG")
    assert image.size_bytes == (data / "train/1.jpg").stat().st_size
    assert image.species.scientific_name == "Ursus arctos"
    assert (image.license, image.rights_holder, image.latitude) == ("CC BY 4.0", "Ada", 52.5)
    assert thumbnail_path(image.sha256).exists()
    bear = Species.objects.get(scientific_name="Ursus arctos")
    assert (bear.common_name, bear.family, bear.iconic_group) == (
        "Brown Bear",
        "Ursidae",
        "Mammals",
    )


def test_a_second_import_adds_and_changes_nothing(data):
    path = coco(data)
    import_images(path=path)
    before = list(Image.objects.values())
    assert figures(import_images(path=path)) == (0, 0, 3, 0)
    assert list(Image.objects.values()) == before
    assert Species.objects.count() == 2


def test_files_that_another_data_set_has_are_counted(data):
    path = coco(data)
    assert import_images(path=path).copies == 0
    (data / "train/2.jpg").write_bytes(jpeg("yellow"))
    report = import_images(path=path, dataset="the same again")
    assert (report.added, report.copies) == (3, 2)
    assert import_images(path=path, dataset="the same again").copies == 2


def test_a_size_that_is_not_the_files_own_is_told(data):
    images = [
        coco_image(1, width=80, height=60),
        coco_image(2, width=30, height=40),  # as a camera stores it that was turned
        coco_image(3, width=None, height=31),
    ]
    report = import_images(path=coco(data, images=images))
    assert (*figures(report), report.left_out_count) == (3, 0, 0, 0, 2)
    assert [str(one).partition(": ")[2] for one in report.refused] == [
        "image 1: width: left out: the file has 40 × 30 pixels, not 80 × 60",
        "image 3: width: left out: the file has 40 × 30 pixels, not 40 × 31",
    ]
    assert set(Image.objects.values_list("width", "height")) == {(40, 30)}


def test_what_changed_is_updated_and_a_changed_file_loses_its_embedding(data, toy_model):
    import_images(path=coco(data))
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0], 3: [0, 0, 1]})
    old = Image.objects.get(pk=2).sha256
    (data / "train/2.jpg").write_bytes(jpeg("yellow"))
    changed = [coco_image(1, rights_holder="Grace"), coco_image(2), coco_image(3)]
    report = import_images(path=coco(data, images=changed))
    assert figures(report) == (0, 2, 1, 0)
    assert Image.objects.get(pk=1).rights_holder == "Grace"
    assert Image.objects.get(pk=2).sha256 != old
    assert set(Embedding.objects.values_list("image_id", flat=True)) == {1, 3}


def test_a_corrected_common_name_takes_effect(data):
    bear = {"id": 11, "name": "Ursus arctos", "common_name": "Bown Bear"}
    frog = {"id": 10, "name": "Rana temporaria", "vernacular_names": {"de": "Grasfrosch"}}
    import_images(path=coco(data, categories=[bear, frog]))
    bear |= {"common_name": "Brown Bear", "vernacular_names": {"en": ["Bear", "Brown Bear"]}}
    path = coco(data, categories=[bear, frog])
    seen = []
    for _ in range(2):
        assert figures(import_images(path=path)) == (0, 0, 3, 0)
        names = SpeciesName.objects.exclude(language="").order_by("pk").values_list("name", "pk")
        seen.append(list(names))
    assert Species.objects.get(scientific_name="Ursus arctos").common_name == "Brown Bear"
    assert seen[0] == seen[1]
    assert [name for name, _ in seen[0]] == ["Grasfrosch", "Brown Bear", "Bear"]


def test_a_file_lost_from_the_store_is_brought_back(data, store):
    path = coco(data)
    import_images(path=path)
    image = Image.objects.get(pk=1)
    for file in store.rglob(f"{image.sha256}.*"):
        file.unlink()
    assert figures(import_images(path=path)) == (0, 0, 3, 0)
    assert thumbnail_path(image.sha256).exists()


def test_an_id_that_another_data_set_holds_gives_way(data):
    image_row(2)
    image_row(70)
    path = coco(data)
    import_images(path=path)
    ids = dict(Image.objects.filter(dataset="data/train").values_list("source_id", "pk"))
    assert ids == {"1": 1, "2": 71, "3": 3}
    assert figures(import_images(path=path)) == (0, 0, 3, 0)


def test_two_files_of_one_folder_are_two_data_sets(data):
    import_images(path=coco(data))
    other = coco(data, name="val.json")
    assert figures(import_images(path=other)) == (3, 0, 0, 0)
    assert Image.objects.count() == 6
    assert figures(import_images(path=other, dataset="data/train")) == (0, 0, 3, 0)


def test_a_folder_with_a_sub_folder_per_species(tmp_path):
    root = tmp_path / "My images"
    lineage = root / "00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria"
    for folder, colour in [(lineage, "red"), (root / "Ursus arctos/2021", "blue")]:
        folder.mkdir(parents=True)
        (folder / "an image.JPG").write_bytes(jpeg(colour))
    (root / ".hidden").mkdir()
    (lineage / ".DS_Store").write_bytes(b"x")
    report = import_images(path=root)
    assert (figures(report), report.dataset) == ((2, 0, 0, 0), "My images")
    rows = Image.objects.order_by("pk").values_list("pk", "file_name", "species__family")
    assert list(rows) == [
        (0, f"{lineage.name}/an image.JPG", "Ranidae"),
        (1, "Ursus arctos/2021/an image.JPG", ""),
    ]
    assert figures(import_images(path=root)) == (0, 0, 2, 0)


def test_links_to_folders_and_names_that_are_no_text_are_refused(tmp_path):
    root, elsewhere = tmp_path / "set", tmp_path / "elsewhere"
    frogs = root / "Rana temporaria"
    for folder in (frogs / "2020", elsewhere):
        folder.mkdir(parents=True)
        (folder / "a.jpg").write_bytes(jpeg())
    (root / "loose.JPG").write_bytes(jpeg("red"))
    (root / os.fsdecode(b"l\xffose.heic")).write_bytes(b"x")
    (root / os.fsdecode(b"fr\xffgs")).mkdir()
    (root / "gone.png").symlink_to(tmp_path / "nowhere.png")
    for side_file in ("scenes.csv", "train.json", "README.md", ".hidden.jpg"):
        (root / side_file).write_text("x")
    (frogs / "2021").symlink_to(elsewhere)
    (frogs / "2020" / "again").symlink_to(frogs / "2020")
    (frogs / ".hidden").symlink_to(elsewhere)
    report = import_images(path=root)
    assert figures(report) == (2, 0, 0, 5)
    assert "\\udcff" in next(r.reason for r in report.refused if r.field == "folder")
    assert {(r.file, r.record, r.field, r.reason.partition(",")[0].partition(".")[0])
            for r in report.refused if r.field == "file_name"} == {
        ("l\\udcffose.heic", "", "file_name",
         "must hold no control characters and be of at most 500 letters"),
        ("gone.png", "", "file_name", "leads out of the folder of the data set"),
        ("Rana temporaria/2021", "", "file_name", "is a link to a folder"),
        ("Rana temporaria/2020/again", "", "file_name", "is a link to a folder"),
    }  # fmt: skip
    [told] = [one for one in report.refused if one.effect == "passed over"]
    assert str(told) == "3 other files (.csv, .json, .md): are no images"


def test_every_kind_of_bad_file_is_named(data):
    secret = data.parent / "secret.jpg"
    secret.write_bytes(jpeg())
    path = coco(data)
    train = data / "train"
    (train / "empty.jpg").write_bytes(b"")
    (train / "page.jpg").write_bytes(b"<html>")
    (train / "half.jpg").write_bytes(jpeg(size=(400, 300))[:900])
    (train / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (train / "link.jpg").symlink_to(secret)
    (train / "nowhere.jpg").symlink_to(secret.with_name("nothing"))
    (train / "folder.jpg").mkdir()
    os.mkfifo(train / "pipe.jpg")
    bad = {
        "empty.jpg": ("file", "empty"),
        "page.jpg": ("file", "not an image"),
        "half.jpg": ("file", "truncated"),
        "broken.jpg": ("file", "cannot be read as one"),
        "missing.jpg": ("file_name", "no such file"),
        "link.jpg": ("file_name", "leads out of the folder"),
        "nowhere.jpg": ("file_name", "leads out of the folder"),
        "folder.jpg": ("file_name", "no such file"),
        "pipe.jpg": ("file_name", "no such file"),
    }
    images = [coco_image(1), *(coco_image(50 + n, file_name=f"train/{name}")
                               for n, name in enumerate(bad))]  # fmt: skip
    outside = [
        "../secret.jpg",
        str(secret),
        "train/../../secret.jpg",
        "train/x/../../../secret.jpg",
    ]
    images += [coco_image(80 + n, file_name=name) for n, name in enumerate(outside)]
    report = import_images(path=coco(data, images=images, annotations=[]))
    assert path.exists()
    assert figures(report) == (1, 0, 0, len(bad) + len(outside))
    for number, (name, (field, says)) in enumerate(bad.items()):
        refusal = next(r for r in report.refused if r.file == f"train/{name}")
        assert (refusal.record, refusal.field) == (f"image {50 + number}", field)
        assert says in refusal.reason
    for name in outside:
        refusal = next(r for r in report.refused if r.file == name)
        assert refusal.reason == "must be a path below the folder of the data set"
    assert set(Image.objects.values_list("pk", flat=True)) == {1}


def test_a_decompression_bomb_is_refused_by_the_setting(data, settings):
    settings.IMAGE_MAX_PIXELS = 1199
    report = import_images(path=coco(data))
    assert figures(report) == (0, 0, 0, 3)
    assert "40 × 30 pixels" in report.refused[0].reason


def test_a_file_too_long_to_read_is_refused(data, monkeypatch):
    monkeypatch.setattr("retrieval.importing.files.MAX_BYTES", 10)
    report = import_images(path=coco(data))
    assert figures(report) == (0, 0, 0, 3)
    assert "at most 10 are allowed" in report.refused[0].reason


def test_an_image_that_turns_bad_keeps_what_was_there(data):
    path = coco(data)
    import_images(path=path)
    before = Image.objects.get(pk=2).sha256
    (data / "train/2.jpg").write_bytes(b"")
    assert figures(import_images(path=path)) == (0, 0, 2, 1)
    assert Image.objects.get(pk=2).sha256 == before


@pytest.mark.parametrize("ending", ["", "}", ', "x": ', " ]"])
def test_malformed_json_writes_nothing(data, ending):
    path = coco(data)
    path.write_text(path.read_text()[:-1] + ending if ending != "}" else path.read_text() + ending)
    with pytest.raises(ImportRefused, match="not valid JSON"):
        import_images(path=path)
    assert (Image.objects.count(), Species.objects.count()) == (0, 0)


def test_what_is_not_there_is_refused(data):
    with pytest.raises(ImportRefused, match="no such file or folder"):
        import_images(path=data / "none")
    with pytest.raises(ImportRefused, match="no image in this folder"):
        import_images(path=data)
    with pytest.raises(ImportRefused, match="shorter one with --dataset"):
        import_images(path=coco(data), dataset="x" * 101)


def test_the_command_reports_and_its_exit_code_tells(data, capsys):
    path = coco(data)
    call_command("import_images", str(path), "--quiet")
    assert capsys.readouterr().out == "data/train: 3 added, 0 updated, 0 skipped, 0 refused\n"
    (data / "train/2.jpg").unlink()
    with pytest.raises(CommandError, match="1 refused"):
        call_command("import_images", str(path))
    assert capsys.readouterr().out == (
        "refused train/2.jpg: image 2: file_name: there is no such file\n"
        "data/train: 0 added, 0 updated, 2 skipped, 1 refused\n"
        f"Files are looked for below {data}. Where they lie elsewhere, name it with --root, which "
        "leaves them there.\n"
    )
    path.write_text("{")
    with pytest.raises(CommandError, match="line 1: premature EOF"):
        call_command("import_images", str(path))


def test_a_full_disk_ends_the_command_with_words(data, monkeypatch):
    path = coco(data)

    def full(source, target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        with pytest.raises(CommandError, match=r"No space left on device.*run this again"):
            call_command("import_images", str(path), "--quiet")
    call_command("import_images", str(path), "--quiet")
    assert Image.objects.count() == 3


def test_control_characters_of_names_are_refused_and_never_printed(tmp_path, capsys):
    root = tmp_path / "set\x1b[2J"
    for name in (
        "Rana temporaria",
        "Rana\ntemporaria",
        "00019_Animalia_Chor\x07data_Amphibia_Anura_Ranidae_Rana_temporaria",
    ):
        (root / name).mkdir(parents=True)
        (root / name / "a.jpg").write_bytes(jpeg())
    (root / "Rana temporaria/b\x1b]0;c\x07.jpg").write_bytes(jpeg("red"))
    with pytest.raises(CommandError, match=r"name holds control characters: 'set\\x1b\[2J'"):
        call_command("import_images", str(root), "--quiet")
    assert not Image.objects.exists()
    assert not Species.objects.exists()
    capsys.readouterr()
    with pytest.raises(CommandError, match="3 refused"):
        call_command("import_images", str(root), "--quiet", "--dataset", "set")
    told = capsys.readouterr().out
    assert not any(one in told for one in "\x1b\x07")
    for name in (r"Rana\ntemporaria: folder", r"Chor\x07data", r"b\x1b]0;c\x07.jpg: file_name"):
        assert name in told
    assert [one.file_name for one in Image.objects.all()] == ["Rana temporaria/a.jpg"]
    assert Species.objects.count() == 1


def test_a_pipe_is_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "train.json")
    with pytest.raises(CommandError, match=r"train\.json: This is neither a file nor a folder"):
        call_command("import_images", str(tmp_path / "train.json"), "--quiet")


def test_the_real_photos(shared_dir):
    path = shared_dir / "photos/train.json"
    assert figures(import_images(path=path)) == (127, 0, 0, 0)
    assert figures(import_images(path=path)) == (0, 0, 127, 0)
    assert Species.objects.count() == 102
    listed = {i["id"]: (i["width"], i["height"]) for i in json.loads(path.read_text())["images"]}
    assert {i.pk: (i.width, i.height) for i in Image.objects.all()} == listed
