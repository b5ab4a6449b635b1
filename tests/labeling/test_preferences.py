"""Keys and view of the labeling page, kept on the server for each person."""

from __future__ import annotations

from labeling.studio.keymap import ACTIONS, default_keys
from labeling.studio.models import LabelingPreferences
from tests.labeling.conftest import fields

ADDRESS = "/api/preferences/labeling/"


def test_at_first_all_is_as_nobody_changed_it(annotator_api, django_assert_num_queries):
    with django_assert_num_queries(2):  # the token, the preferences
        answer = annotator_api.get(ADDRESS)
    assert answer.json() == {"keys": default_keys(), "defaults": default_keys(), "view": {}}
    assert not LabelingPreferences.objects.exists()


def test_keys_and_view_are_each_persons_own(annotator, annotator_api, other_annotator_api):
    view = {"view": "grid", "size": 40, "panels": ["chart"], "brightness": 1.25, "": None}
    assert annotator_api.put(ADDRESS, {"view": view}).json()["view"] == view
    changed = annotator_api.put(ADDRESS, {"keys": default_keys() | {"unsure": ["k", "3"]}})
    assert changed.status_code == 200
    assert (
        changed.json()
        == annotator_api.get(ADDRESS).json()
        == {
            "keys": default_keys() | {"unsure": ["k", "3"]},
            "defaults": default_keys(),
            "view": view,
        }
    )
    # Only what differs from the default is stored.
    assert LabelingPreferences.objects.get(user=annotator).keys == {"unsure": ["k", "3"]}
    body = other_annotator_api.get(ADDRESS).json()
    assert (body["keys"], body["view"]) == (default_keys(), {})


def test_what_is_refused_is_named_and_changes_nothing(annotator_api):
    before = annotator_api.put(ADDRESS, {"keys": {"undo": ["q"]}, "view": {"a": 1}}).json()
    for body, named, detail in (
        ({"keys": {"fly": ["x"]}}, "keys.fly", "There is no action 'fly'."),
        ({"keys": {"flag": ["r"]}}, "keys.flag", "“r” can't be the key of both “Relevant” and"),
        ({"keys": {"flag": "r"}}, "keys.flag", "Expected a list of items"),
        ({"keys": {"flag": [["r"]]}}, "keys.flag.0", "Not a valid string."),
        ({"keys": None}, "keys", "This field may not be null."),
        (
            {"keys": {str(n): ["x"] for n in range(len(ACTIONS) + 1)}},
            "keys",
            "There are more actions than the page has.",
        ),
        ({"view": []}, "view", "Expected a dictionary of items"),
        ({"view": {"a": [{"\0": 1}]}}, "view.a.0", "A NUL character is no text."),
        ({"view": {"a": "é" * 2045}}, "view", "4098 bytes of JSON; at most 4096 are stored."),
        ({"size": 3}, "size", "There is no such field."),
        ([], "", "Invalid data. Expected a dictionary"),
    ):
        answer = annotator_api.put(ADDRESS, body)
        assert (answer.status_code, fields(answer)) == (400, [named])
        assert answer.json()["errors"][0]["detail"].startswith(detail)
    answer = annotator_api.put(ADDRESS, '{"view": {"a": 1e999}}', content_type="application/json")
    assert (answer.status_code, fields(answer)) == (400, ["view"])
    assert annotator_api.get(ADDRESS).json() == before


def test_kept_keys_that_no_longer_fit_give_way_to_the_defaults(annotator, annotator_api):
    LabelingPreferences.objects.create(user=annotator, keys={"gone": ["x"]}, view={"a": 1})
    body = annotator_api.get(ADDRESS).json()
    assert (body["keys"], body["view"]) == (default_keys(), {"a": 1})


def test_strangers_and_other_methods(annotator_api, anonymous_api):
    assert anonymous_api.get(ADDRESS).status_code == 401
    assert anonymous_api.put(ADDRESS, {"view": {}}).status_code == 401
    assert annotator_api.post(ADDRESS, {"view": {}}).status_code == 405
