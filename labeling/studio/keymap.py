"""The keys of the labeling page: what each does, what it is by default, and what may be changed.

A key is written as the browser names it (`KeyboardEvent.key`): letters in lower case, "Space" for
the space bar, before it the modifiers that are held, in the order "Ctrl+", "Alt+", "Shift+". Shift
is written only where it doesn't show in the character itself: with a named key (Shift+PageUp) or
with Ctrl (Ctrl+Shift+z). Meta counts as Ctrl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from labeling.judging.grades import GRADES

Context = Literal["both", "single", "grid", "graded"]
Group = Literal["Judging", "Moving", "Image", "Grid", "Panels"]

MOST_KEYS = 4
MODIFIERS: Final = ("Ctrl+", "Alt+", "Shift+")
NAMED_KEYS: Final = frozenset(
    {
        "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "Backspace", "Delete", "End", "Enter",
        "Home", "Insert", "PageDown", "PageUp", "Space", *(f"F{n}" for n in range(1, 13)),
    }
)  # fmt: skip
#: Without these nobody leaves a field or a dialog by the keyboard.
NEVER: Final = frozenset({"Escape", "Tab"})
#: With these a browser opens or closes a tab or window, and a page doesn't receive them.
BROWSERS_OWN: Final = frozenset(
    {"Ctrl+n", "Ctrl+t", "Ctrl+w", "Ctrl+q", "Ctrl+Shift+n", "Ctrl+Shift+t", "Ctrl+Shift+w"}
)


class KeysRefused(ValueError):
    """Keys that can't be used; the message says why, for people."""

    def __init__(self, action: str, message: str) -> None:
        super().__init__(message)
        self.action = action
        """The name of the action."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a key does."""

    name: str
    label: str
    """For people."""
    group: Group
    """Under which the help lists it."""
    context: Context
    """The view in which its keys work; those of "graded" work, before any others, where the query
    asks for grades."""
    keys: tuple[str, ...]
    """By default; the first is the one shown on a button."""


ACTIONS: Final = (
    Action("relevant", "Relevant", "Judging", "both", ("r", "1")),
    Action("not_relevant", "Not relevant", "Judging", "both", ("n", "2")),
    Action("unsure", "Unsure", "Judging", "both", ("u", "3")),
    *(
        Action(f"grade_{grade}", name, "Judging", "graded", (str(key),))
        for key, (grade, name) in enumerate(GRADES.items(), start=1)
    ),
    Action("undo", "Undo", "Judging", "both", ("z", "Ctrl+z")),
    Action("redo", "Redo", "Judging", "both", ("y", "Ctrl+Shift+z")),
    Action("next_unlabeled", "To the next unlabeled image", "Moving", "both", ("End",)),
    Action("back", "Back one image", "Moving", "single", ("ArrowLeft", "Backspace")),
    Action("skip", "Skip, leave unlabeled", "Moving", "single", ("ArrowRight", "s")),
    Action("toggle_view", "Switch between single view and grid", "Moving", "both", ("g",)),
    Action("zoom_in", "Zoom in", "Image", "single", ("+", "=")),
    Action("zoom_out", "Zoom out", "Image", "single", ("-",)),
    Action("zoom_fit", "Fit into the window", "Image", "single", ("0",)),
    Action("zoom_pixels", "Original pixels", "Image", "single", ("x",)),
    Action("brighter", "Brighter", "Image", "single", ("]",)),
    Action("darker", "Darker", "Image", "single", ("[",)),
    Action("more_contrast", "More contrast", "Image", "single", ("}",)),
    Action("less_contrast", "Less contrast", "Image", "single", ("{",)),
    Action("plain_image", "Reset brightness and contrast", "Image", "single", ("\\",)),
    Action("grid_left", "One to the left", "Grid", "grid", ("ArrowLeft",)),
    Action("grid_right", "One to the right", "Grid", "grid", ("ArrowRight",)),
    Action("grid_up", "One row up", "Grid", "grid", ("ArrowUp",)),
    Action("grid_down", "One row down", "Grid", "grid", ("ArrowDown",)),
    Action("grid_toggle", "Mark or unmark", "Grid", "grid", ("Space",)),
    Action("grid_submit", "Submit the page", "Grid", "grid", ("Enter",)),
    Action("grid_page_back", "Page back", "Grid", "grid", ("PageUp",)),
    Action("grid_page_forward", "Page forward", "Grid", "grid", ("PageDown",)),
    Action("grid_larger", "Larger images", "Grid", "grid", ("+", "=")),
    Action("grid_smaller", "Smaller images", "Grid", "grid", ("-",)),
    Action("grid_open", "Open in single view", "Grid", "grid", ("o",)),
    Action("flag", "Flag the image", "Panels", "both", ("f",)),
    Action("similar", "More like this", "Panels", "both", ("m",)),
    Action("votes", "Show votes before one's own (reviews)", "Panels", "both", ("v",)),
    Action("history", "History of the image", "Panels", "both", ("h",)),
    Action("comments", "Comments on the image", "Panels", "both", ("c",)),
    Action("reference", "Reference", "Panels", "both", ("e",)),
    Action("filters", "Filters", "Panels", "both", ("/",)),
    Action("stop_panel", "Progress, and handing in", "Panels", "both", ("p",)),
    Action("keys_help", "All keys", "Panels", "both", ("?",)),
)  # fmt: skip
SIGNS: Final = {
    "ArrowLeft": "←",
    "ArrowRight": "→",
    "ArrowUp": "↑",
    "ArrowDown": "↓",
    "Backspace": "⌫",
    "Delete": "Del",
    "PageUp": "Page ↑",
    "PageDown": "Page ↓",
}
"""How people read the keys whose names are long."""
BY_NAME: Final = {action.name: action for action in ACTIONS}


def default_keys() -> dict[str, list[str]]:
    """The default keys of each action."""
    return {action.name: list(action.keys) for action in ACTIONS}


def shown_key(key: str) -> str:
    """A key as people read it: "R", "←", "Ctrl+Z"."""
    *held, rest = key.split("+") if key[-1] != "+" else [*key[:-1].split("+")[:-1], "+"]
    shown = SIGNS.get(rest, rest.upper() if len(rest) == 1 else rest)
    return "+".join([*held, shown])


def as_json(grades: Mapping[int, str] = GRADES) -> dict[str, Any]:
    """What the browser knows of keys: `actions` in the order of the help, and `signs`; `grades` are
    what a query calls its grades.
    """
    labels = {f"grade_{grade}": name for grade, name in grades.items()}
    actions = [
        asdict(action) | {"label": labels.get(action.name, action.label)}
        for action in ACTIONS
        if action.context != "graded" or action.name in labels
    ]
    return {"actions": actions, "signs": SIGNS}


def check_keys(changes: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the keys of every action: those of `changes`, and the default of the other actions.

    Raises KeysRefused for an unknown action, for no key, a key that isn't written as the
    module says or that the browser keeps for itself, more than MOST_KEYS for one action, and for a
    key of two actions that work in the same view.
    """
    effective = default_keys()
    for name, keys in changes.items():
        if name not in BY_NAME:
            raise KeysRefused(name, f"There is no action {name!r}.")
        effective[name] = _checked(BY_NAME[name], keys)
    for view in (("single", "both"), ("grid", "both"), ("graded",)):
        taken: dict[str, Action] = {}
        for action in ACTIONS:
            if action.context not in view:
                continue
            for key in effective[action.name]:
                other = taken.setdefault(key, action)
                if other is not action:
                    blamed = action if action.name in changes else other
                    raise KeysRefused(
                        blamed.name,
                        f"“{key}” can't be the key of both “{other.label}” and “{action.label}”.",
                    )
    return effective


def changed_keys(effective: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The keys that differ from the default: all that needs to be stored."""
    return {
        name: list(keys) for name, keys in effective.items() if tuple(keys) != BY_NAME[name].keys
    }


def key_problem(key: str) -> str:
    """Why this can't be a key, for people; an empty string if it can."""
    if not key:
        return "A key can't be empty."
    rest, held = key, []
    for modifier in MODIFIERS:
        if rest.startswith(modifier):
            rest = rest.removeprefix(modifier)
            held.append(modifier)
    shown = f"“{key[:40]}”"
    if rest in NEVER:
        return f"{shown} can't be changed: it leaves fields and dialogs."
    if key in BROWSERS_OWN:
        return f"{shown} belongs to the browser."
    if rest in NAMED_KEYS:
        return ""
    if len(rest) != 1 or not rest.isprintable() or rest.isspace():
        return f"{shown} isn't a key."
    if rest != rest.lower():
        return f"{shown}: write letters in lower case."
    if "Shift+" in held and "Ctrl+" not in held:
        return f"{shown}: Shift is part of the character itself, so leave it out."
    return ""


def _checked(action: Action, keys: Sequence[str]) -> list[str]:
    if not keys:
        raise KeysRefused(action.name, f"“{action.label}” needs a key.")
    if len(keys) > MOST_KEYS:
        raise KeysRefused(action.name, f"“{action.label}”: at most {MOST_KEYS} keys.")
    for key in keys:
        if problem := key_problem(key):
            raise KeysRefused(action.name, f"“{action.label}”: {problem}")
    return list(dict.fromkeys(keys))
