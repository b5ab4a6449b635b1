"""The keys of the labeling page: the defaults, and what may be changed."""

from __future__ import annotations

from itertools import product

import pytest

from labeling.studio.keymap import (
    ACTIONS,
    KeysRefused,
    changed_keys,
    check_keys,
    default_keys,
    key_problem,
    shown_key,
)

pytestmark = pytest.mark.pure


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


def test_two_actions_can_swap_their_keys_and_one_key_means_one_thing_in_each_view():
    effective = check_keys({"relevant": ["n"], "not_relevant": ["r"]})
    assert (effective["relevant"], effective["not_relevant"]) == (["n"], ["r"])
    assert check_keys({"zoom_in": ["o"]})["zoom_in"] == ["o"]
    assert check_keys({"grid_open": ["x"]})["grid_open"] == ["x"]


def test_refused_changes():
    for changes, action, message in (
        ({"fly": ["x"]}, "fly", "There is no action 'fly'."),
        ({"relevant": []}, "relevant", "“Relevant” needs a key."),
        ({"relevant": ["a", "b", "c", "d", "e"]}, "relevant", "“Relevant”: at most 4 keys."),
        ({"relevant": [""]}, "relevant", "“Relevant”: A key can't be empty."),
        (
            {"not_relevant": ["r"]},
            "not_relevant",
            "“r” can't be the key of both “Relevant” and “Not relevant”.",
        ),
        (
            {"flag": ["k"], "history": ["k"]},
            "history",
            "“k” can't be the key of both “Flag the image” and “History of the image”.",
        ),
    ):
        with pytest.raises(KeysRefused) as refused:
            check_keys(changes)
        assert (refused.value.action, str(refused.value)) == (action, message)


def test_what_is_a_key_and_what_is_none():
    for key in (
        *("a", "é", "9", "?", "+", "Ctrl++", "Ctrl+a", "Ctrl+Shift+a", "Space", "F12", "Shift+F1"),
        *("Ctrl+Alt+Shift+Enter", "Shift+Space", "Alt+Shift+Home"),
    ):
        assert key_problem(key) == "", key
    for key, problem in (
        ("Ctrl+A", "“Ctrl+A”: write letters in lower case."),
        ("Shift+a", "“Shift+a”: Shift is part of the character itself, so leave it out."),
        ("Escape", "“Escape” can't be changed: it leaves fields and dialogs."),
        ("Shift+Tab", "“Shift+Tab” can't be changed: it leaves fields and dialogs."),
        ("Ctrl+w", "“Ctrl+w” belongs to the browser."),
    ):
        assert key_problem(key) == problem
    for key in ("Shift+Ctrl+z", "Meta+z", "Ctrl+", "Control", "space", " ", "\0", "ab", "F13"):
        assert key_problem(key) == f"“{key}” isn't a key."
