import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from retrieval.importing.coco import CocoSource
from retrieval.importing.records import ImportRefused
from tests.retrieval.making import coco, coco_image

pytestmark = pytest.mark.pure


def read(path):
    """The source, its images by source id, and what it refused as (record, field, reason)."""
    refused = []
    source = CocoSource(path, refused.append)
    images = {image.source_id: image for image in source.images()}
    return source, images, [(r.record, r.field, r.reason) for r in refused]


def test_images_come_with_species_licence_place_and_date(tmp_path):
    source, images, refused = read(coco(tmp_path))
    assert refused == []
    assert (source.count(), source.highest_id) == (3, 3)
    image = images["1"]
    assert (image.preferred_id, image.file_name) == (1, "train/1.jpg")
    assert image.scientific_name == "Ursus arctos"
    assert images["2"].scientific_name == "Rana temporaria"
    assert (image.license, image.license_url) == ("CC BY 4.0", "https://example.org/by")
    assert (image.rights_holder, image.latitude, image.longitude) == ("Ada", 52.5, 13.4)
    assert image.location_uncertainty == 12
    assert image.observed_at == datetime(2021, 5, 30, 14, 5, tzinfo=timezone(timedelta(hours=2)))


def test_categories_become_species(tmp_path):
    source, _, _ = read(
        coco(
            tmp_path,
            categories=[
                {
                    "id": 5,
                    "name": "Danaus  plexippus",
                    "common_name": "Monarch",
                    "vernacular_names": {"de": ["Monarchfalter", "Monarch"], "fr": "Monarque"},
                    "lookalike_group": "orange butterflies",
                    "conservation_status": "LC",
                    "supercategory": "Insects",
                    "class": "Insecta",
                    "image_dir_name": "00005_Animalia_Arthropoda_Insecta_Lepidoptera_Nymphalidae_"
                    "Danaus_plexippus",
                },
                {"id": 6, "name": "Salmo salar", "supercategory": "Ray-finned Fishes"},
            ],
            annotations=[],
        )
    )
    monarch, salmon = source.species()
    assert monarch.scientific_name == "Danaus plexippus"
    assert monarch.conservation_status == "LC"
    assert monarch.names == (
        ("en", "Monarch"),
        ("de", "Monarchfalter"),
        ("de", "Monarch"),
        ("fr", "Monarque"),
    )
    assert (monarch.lookalike_group, monarch.iconic_group) == ("orange butterflies", "Insects")
    assert (monarch.kingdom, monarch.class_name, monarch.family) == (
        "Animalia",
        "Insecta",
        "Nymphalidae",
    )
    assert (salmon.iconic_group, salmon.genus) == ("Fish", "Salmo")


def test_joiners_in_names_are_kept(tmp_path):
    name = "\u0645\u06cc\u200c\u0634"
    bear = {"id": 10, "name": "Ursus arctos", "vernacular_names": {"fa": name}}
    source, _, refused = read(coco(tmp_path, categories=[bear], annotations=[]))
    assert (source.species()[0].names, refused) == ((("fa", name),), [])


def test_sections_may_come_in_any_order(tmp_path):
    path = coco(tmp_path)
    whole = json.loads(path.read_text())
    reversed_path = tmp_path / "reversed.json"
    reversed_path.write_text(json.dumps(dict(reversed(whole.items()))))
    assert read(reversed_path)[1:] == read(path)[1:]


@pytest.mark.parametrize("bad_id", [None, -1, str(2**63), 1.5, True, [1], "", "x" * 501])
def test_a_bad_id_is_named_by_position(tmp_path, bad_id):
    path = coco(tmp_path, images=[coco_image(1), coco_image(2, id=bad_id)], annotations=[])
    source, images, refused = read(path)
    assert set(images) == {"1"}
    assert [(record, field) for record, field, _ in refused] == [("image number 2", "id")]
    assert source.count() == 2


def test_of_a_repeated_id_the_first_stays(tmp_path):
    twice = [coco_image(1), coco_image(2), coco_image(1, file_name="train/3.jpg")]
    _, images, refused = read(coco(tmp_path, images=twice))
    assert images["1"].file_name == "train/1.jpg"
    assert set(images) == {"1", "2"}
    assert ("image 1", "id", "an earlier image of this file has the same id") in refused
    assert [record for record, _, _ in refused] == ["annotation 103", "image 1"]


def test_texts_may_be_ids_and_digits_are_numbers(tmp_path):
    images = [coco_image(1, id="a-7"), coco_image(2, id="2"), coco_image(3, id="007")]
    annotations = [
        {"id": 1, "image_id": "a-7", "category_id": 10},
        {"id": 2, "image_id": 2, "category_id": 11},
        {"id": 3, "image_id": "007", "category_id": 11},
    ]
    source, found, refused = read(coco(tmp_path, images=images, annotations=annotations))
    assert refused == []
    assert {i: (r.preferred_id, r.scientific_name) for i, r in found.items()} == {
        "a-7": (None, "Rana temporaria"),
        "2": (2, "Ursus arctos"),
        "007": (None, "Ursus arctos"),
    }
    assert source.highest_id == 2


def test_several_boxes_of_one_species_are_one_and_two_species_are_refused(tmp_path):
    annotations = [
        {"id": 1, "image_id": 1, "category_id": 10},
        {"id": 2, "image_id": 1, "category_id": 10},
        {"id": 3, "image_id": 2, "category_id": 10},
        {"id": 4, "image_id": 2, "category_id": 11},
    ]
    _, images, refused = read(coco(tmp_path, annotations=annotations))
    assert images["1"].scientific_name == "Rana temporaria"
    assert images["3"].scientific_name == ""
    assert refused == [
        (
            "image 2",
            "category_id",
            "it is annotated with several species: Rana temporaria (annotation 3), "
            "Ursus arctos (annotation 4)",
        )
    ]


def test_dates_without_a_zone_are_utc_and_slashes_are_read(tmp_path):
    images = [
        coco_image(1, date=None, date_captured="2013/11/14 11:18:45"),
        coco_image(2, date="2013-11-14"),
        coco_image(3, date=""),
    ]
    _, found, refused = read(coco(tmp_path, images=images))
    assert refused == []
    assert found["1"].observed_at == datetime(2013, 11, 14, 11, 18, 45, tzinfo=UTC)
    assert found["2"].observed_at == datetime(2013, 11, 14, tzinfo=UTC)
    assert found["3"].observed_at is None


@pytest.mark.parametrize("whole", ['{"annotations": []}', '{"images": 3}', '{"images": {"a": 1}}'])
def test_a_file_without_images_is_refused_whole(tmp_path, whole):
    path = tmp_path / "x.json"
    path.write_text(whole)
    with pytest.raises(ImportRefused, match="no list “images”"):
        CocoSource(path, lambda refusal: None)


# What is wrong with a field of an image, by field.
BAD_FIELDS = [
    ({"file_name": None}, "is missing"),
    ({"file_name": 7}, "is missing"),
    ({"file_name": "a\x1b[2J.jpg"}, r"not 'a\x1b[2J.jpg'"),
    ({"file_name": "x" * 501}, "at most 500"),
    ({"width": -3}, "positive integer, not -3"),
    ({"height": "30"}, "positive integer, not '30'"),
    ({"latitude": 91}, "from -90 to 90, not 91"),
    ({"longitude": -181.5}, "from -180 to 180"),
    ({"latitude": "north"}, "must be a number"),
    ({"latitude": True}, "must be a number"),
    ({"location_uncertainty": 1e40}, "from 0 to 20040000, not 1e+40"),
    ({"elevation": 9001}, "from -12000 to 9000"),
    ({"observer": 17}, "must be text, not 17"),
    ({"date": "yesterday"}, "must be a date"),
    ({"date": 20210530}, "must be a date"),
    ({"date": "2021-02-30"}, "must be a date"),
    ({"date": "0001-01-01T00:00:00+14:00"}, "years 1 to 9999"),
    ({"date": "9999-12-31"}, "years 1 to 9999"),
    ({"license": 9}, "is no license of the file: 9"),
    ({"rights_holder": ["Ada"]}, "must be text"),
    ({"rights_holder": "A\u0000da"}, r"control characters: 'A\x00da'"),
]


#: Those that an image may lack: it comes without them.
LEFT_OUT = {
    "latitude", "longitude", "location_uncertainty", "elevation", "observer", "date", "width",
    "height", "license", "rights_holder",
}  # fmt: skip


def test_a_bad_field_is_named_and_the_rest_goes_on(tmp_path):
    bad = [coco_image(n, **fields) for n, (fields, _) in enumerate(BAD_FIELDS, start=10)]
    _, images, refused = read(coco(tmp_path, images=[coco_image(1), *bad, coco_image(3)]))
    without = {
        str(n): next(iter(fields))
        for n, (fields, _) in enumerate(BAD_FIELDS, start=10)
        if fields.keys() <= LEFT_OUT
    }
    assert set(images) == {"1", "3", *without}
    for n, field in without.items():
        name = "observed_at" if field == "date" else field
        assert getattr(images[n], name) in (None, ""), n
        assert (images[n].latitude is None) == (images[n].longitude is None)
    found = [one for one in refused if one[0].startswith("image ")]
    assert len(found) == len(BAD_FIELDS)
    for n, (fields, says) in enumerate(BAD_FIELDS, start=10):
        [(record, field, reason)] = [one for one in found if one[0] == f"image {n}"]
        assert (record, field) == (f"image {n}", *fields)
        assert says in reason


@pytest.mark.parametrize(
    ("annotation", "record", "field", "says"),
    [
        ({"id": 7, "image_id": 2}, "image 2", "category_id", "no category (annotation 7)"),
        ({"id": 7, "image_id": 2, "category_id": 99}, "image 2", "category_id",
         "there is no category 99 (annotation 7)"),
        ({"image_id": 2, "category_id": 99}, "image 2", "category_id", "there is no category 99"),
        ({"id": 7, "image_id": 88, "category_id": 10}, "annotation 7", "image_id",
         "there is no image 88"),
        ({"id": 7, "category_id": 10}, "annotation 7", "image_id", "is missing"),
        ({"id": 7, "image_id": 2, "category_id": [1]}, "annotation 7", "category_id",
         "must be an integer or a text"),
        ("nonsense", "annotation number 3", "", "must be an object"),
    ],
)  # fmt: skip
def test_a_bad_annotation_is_named(tmp_path, annotation, record, field, says):
    good = [{"id": n, "image_id": n, "category_id": 10} for n in (1, 3)]
    _, images, refused = read(coco(tmp_path, annotations=[*good, annotation]))
    assert [(r, f) for r, f, _ in refused] == [(record, field)]
    assert says in refused[0][2]
    assert ("2" in images) == (record != "image 2")


@pytest.mark.parametrize(
    ("category", "record", "field"),
    [
        ({"id": 11, "name": ""}, "category 11", "name"),
        ({"id": 11, "name": "x" * 201}, "category 11", "name"),
        ({"id": 11, "name": "Ursus arctos", "family": 3}, "category 11", "family"),
        ({"id": 11, "name": "U. a.", "vernacular_names": "b"}, "category 11", "vernacular_names"),
        ({"name": "Ursus arctos"}, "category number 2", "id"),
        ({"id": 10, "name": "Ursus arctos"}, "category 10", "id"),
        (None, "category number 2", ""),
    ],
)
def test_a_bad_category_is_named_and_its_images_too(tmp_path, category, record, field):
    frog = {"id": 10, "name": "Rana temporaria"}
    source, images, refused = read(coco(tmp_path, categories=[frog, category]))
    assert [s.scientific_name for s in source.species()] == ["Rana temporaria"]
    assert (refused[0][0], refused[0][1]) == (record, field)
    assert [r[0] for r in refused[1:]] == ["image 1", "image 3"]
    assert set(images) == {"2"}


@pytest.mark.parametrize("name", ["licenses", "annotations", "categories"])
@pytest.mark.parametrize(("value", "kind"), [(None, "null"), ({"a": []}, "object"), (0, "number")])
def test_what_should_be_a_list_and_is_none_is_refused_by_name(tmp_path, name, value, kind):
    with pytest.raises(ImportRefused, match=f"“{name}” must be a list, not {kind}. Nothing"):
        CocoSource(coco(tmp_path, **{name: value}), lambda refusal: None)
