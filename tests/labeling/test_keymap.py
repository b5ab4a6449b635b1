"""The keys of the labeling page: the defaults, and what may be changed."""

from __future__ import annotations

from itertools import product

import pytest

from labeling.studio.keymap import (
    ACTIONS,
    KeysRefused,
    as_json,
    changed_keys,
    check_keys,
    default_keys,
    key_problem,
    shown_key,
)


def test_the_default_keys():
    assert default_keys() == {
        "relevant": ["r", "1"],
        "not_relevant": ["n", "2"],
        "unsure": ["u", "3"],
        "grade_3": ["1"],
        "grade_2": ["2"],
        "grade_1": ["3"],
        "grade_0": ["4"],
        "undo": ["z", "Ctrl+z"],
        "redo": ["y", "Ctrl+Shift+z"],
        "next_unlabeled": ["End"],
        "toggle_view": ["g"],
        "flag": ["f"],
        "similar": ["m"],
        "history": ["h"],
        "votes": ["v"],
        "comments": ["c"],
        "reference": ["e"],
        "filters": ["/"],
        "stop_panel": ["p"],
        "keys_help": ["?"],
        "back": ["ArrowLeft", "Backspace"],
        "skip": ["ArrowRight", "s"],
        "zoom_in": ["+", "="],
        "zoom_out": ["-"],
        "zoom_fit": ["0"],
        "zoom_pixels": ["x"],
        "brighter": ["]"],
        "darker": ["["],
        "more_contrast": ["}"],
        "less_contrast": ["{"],
        "plain_image": ["\\"],
        "grid_left": ["ArrowLeft"],
        "grid_right": ["ArrowRight"],
        "grid_up": ["ArrowUp"],
        "grid_down": ["ArrowDown"],
        "grid_toggle": ["Space"],
        "grid_submit": ["Enter"],
        "grid_page_back": ["PageUp"],
        "grid_page_forward": ["PageDown"],
        "grid_larger": ["+", "="],
        "grid_smaller": ["-"],
        "grid_open": ["o"],
    }


def test_contexts_and_groups():
    contexts = {action.name: action.context for action in ACTIONS}
    assert [list(contexts.values()).count(one) for one in ("both", "single", "grid", "graded")] == [
        16,
        11,
        11,
        4,
    ]
    assert {name for name, context in contexts.items() if context == "grid"} == {
        name for name in contexts if name.startswith("grid_")
    }
    assert list(dict.fromkeys(action.group for action in ACTIONS)) == [
        "Judging",
        "Moving",
        "Image",
        "Grid",
        "Panels",
    ]
    labels = [action.label for action in ACTIONS]
    assert len(set(labels)) == len(labels) == 42


def test_the_page_gets_all_of_it():
    given = as_json()["actions"]
    assert len(given) == 42
    assert given[0] == {
        "name": "relevant",
        "label": "Relevant",
        "group": "Judging",
        "context": "both",
        "keys": ("r", "1"),
    }


def test_keys_as_people_read_them():
    for key, shown in (
        *(("r", "R"), ("Space", "Space"), ("+", "+"), ("Ctrl++", "Ctrl++"), ("ArrowUp", "↑")),
        *(("Ctrl+Shift+z", "Ctrl+Shift+Z"), ("Backspace", "⌫"), ("Alt+PageUp", "Alt+Page ↑")),
    ):
        assert shown_key(key) == shown


def test_defaults_are_good_keys_and_do_not_collide():
    assert check_keys({}) == default_keys()
    assert check_keys(default_keys()) == default_keys()
    assert changed_keys(check_keys({})) == {}


def test_changed_keys_are_kept_beside_the_defaults():
    effective = check_keys({"relevant": ["j", "Ctrl+Alt+Shift+PageUp"], "unsure": ["k", "k"]})
    assert effective == default_keys() | {
        "relevant": ["j", "Ctrl+Alt+Shift+PageUp"],
        "unsure": ["k"],
    }
    assert changed_keys(effective) == {"relevant": ["j", "Ctrl+Alt+Shift+PageUp"], "unsure": ["k"]}


def test_two_actions_can_swap_their_keys():
    effective = check_keys({"relevant": ["n"], "not_relevant": ["r"]})
    assert (effective["relevant"], effective["not_relevant"]) == (["n"], ["r"])


def test_one_key_can_mean_one_thing_in_each_view():
    assert check_keys({"zoom_in": ["o"]})["zoom_in"] == ["o"]
    assert check_keys({"grid_open": ["x"]})["grid_open"] == ["x"]


@pytest.mark.parametrize(
    ("changes", "action", "message"),
    [
        ({"fly": ["x"]}, "fly", "There is no action 'fly'."),
        ({"relevant": []}, "relevant", "“Relevant” needs a key."),
        ({"relevant": ["a", "b", "c", "d", "e"]}, "relevant", "“Relevant”: at most 4 keys."),
        ({"relevant": [""]}, "relevant", "“Relevant”: A key can't be empty."),
        (
            {"relevant": ["n"]},
            "relevant",
            "“n” can't be the key of both “Relevant” and “Not relevant”.",
        ),
        (
            {"not_relevant": ["r"]},
            "not_relevant",
            "“r” can't be the key of both “Relevant” and “Not relevant”.",
        ),
        (
            {"flag": ["x"]},
            "flag",
            "“x” can't be the key of both “Original pixels” and “Flag the image”.",
        ),
        ({"zoom_in": ["r"]}, "zoom_in", "“r” can't be the key of both “Relevant” and “Zoom in”."),
        ({"undo": ["o"]}, "undo", "“o” can't be the key of both “Undo” and “Open in single view”."),
        (
            {"flag": ["k"], "history": ["k"]},
            "history",
            "“k” can't be the key of both “Flag the image” and “History of the image”.",
        ),
    ],
)
def test_refused_changes(changes, action, message):
    with pytest.raises(KeysRefused) as refused:
        check_keys(changes)
    assert (refused.value.action, str(refused.value)) == (action, message)


@pytest.mark.parametrize(
    "key",
    ["a", "é", "ß", "ж", "9", "?", "+", "Ctrl++", "Ctrl+a", "Alt+a", "Ctrl+Shift+a", "Space", "F12",
     "Shift+F1", "Ctrl+Alt+Shift+Enter", "Ctrl+Enter", "Shift+Space", "Alt+Shift+Home"],
)  # fmt: skip
def test_keys_as_they_are_written(key):
    assert key_problem(key) == ""


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("A", "“A”: write letters in lower case."),
        ("Ctrl+A", "“Ctrl+A”: write letters in lower case."),
        ("Shift+a", "“Shift+a”: Shift is part of the character itself, so leave it out."),
        ("Alt+Shift+a", "“Alt+Shift+a”: Shift is part of the character itself, so leave it out."),
        ("Shift+Ctrl+z", "“Shift+Ctrl+z” isn't a key."),
        ("Meta+z", "“Meta+z” isn't a key."),
        ("Ctrl+Ctrl+z", "“Ctrl+Ctrl+z” isn't a key."),
        ("Ctrl+", "“Ctrl+” isn't a key."),
        ("Control", "“Control” isn't a key."),
        ("space", "“space” isn't a key."),
        (" ", "“ ” isn't a key."),
        ("\t", "“\t” isn't a key."),
        ("\0", "“\0” isn't a key."),
        ("ab", "“ab” isn't a key."),
        ("F13", "“F13” isn't a key."),
        ("Escape", "“Escape” can't be changed: it leaves fields and dialogs."),
        ("Shift+Tab", "“Shift+Tab” can't be changed: it leaves fields and dialogs."),
        ("Ctrl+w", "“Ctrl+w” belongs to the browser."),
    ],
)
def test_what_is_no_key(key, problem):
    assert key_problem(key) == problem


def test_every_pair_in_one_view_collides_and_no_other():
    for first, second in product(ACTIONS, repeat=2):
        if first is second:
            continue
        contexts = {first.context, second.context}
        # Where a query asks for grades, their keys go before all others.
        apart = contexts == {"single", "grid"} or (len(contexts) > 1 and "graded" in contexts)
        changes = {first.name: ["F9"], second.name: ["F9"]}
        if apart:
            assert check_keys(changes)[first.name] == ["F9"]
        else:
            with pytest.raises(KeysRefused):
                check_keys(changes)
