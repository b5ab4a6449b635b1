"""Names in charts: cut to a length, made distinct, and placed beside points without overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from benchmark.charts.charts import TEXT_SIZE

LABEL_LENGTH: Final = 34
#: Width of a letter in pixels, generously: browsers have other fonts than the server.
LETTER: Final = 0.6 * TEXT_SIZE
#: Half the side of a point, and from its middle to the name beside it, in pixels.
POINT_ROOM: Final = 5
GAP: Final = 8


@dataclass(frozen=True, slots=True)
class Label:
    """Where a point's name is, in pixels of the drawing area."""

    text: str
    x: float
    y: float
    align: Literal["left", "right", "center"]


def short(name: str, length: int = LABEL_LENGTH) -> str:
    """A name cut in its middle, where its ends distinguish it best."""
    name = " ".join(name.split())
    if len(name) <= length:
        return name
    head = (length - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (length - 1 - head) :].lstrip()}"


def distinct(names: Sequence[str], length: int = LABEL_LENGTH) -> list[str]:
    """Shortened names, no two alike: later ones of the same text are numbered."""
    result: list[str] = []
    for name in names:
        text, number = short(name, length), 1
        while text in result:
            number += 1
            text = f"{short(name, length - len(f' ({number})'))} ({number})"
        result.append(text)
    return result


def place_labels(
    points: Sequence[tuple[float, float]],
    texts: Sequence[Sequence[str]],
    *,
    width: float,
    height: float,
) -> list[Label]:
    """One of its texts beside each point, in pixels from the top left, so that no text covers
    another or a point; a point where none fits stays without.

    Higher points get theirs first, and all points their first text before any its second. Each
    text is tried to the right, left, above and below.
    """
    taken = [(x - POINT_ROOM, y - POINT_ROOM, x + POINT_ROOM, y + POINT_ROOM) for x, y in points]
    labels = []
    waiting = sorted(range(len(points)), key=lambda one: points[one][1])
    for attempt in range(max(map(len, texts), default=0)):
        without = []
        for place in waiting:
            text = texts[place][attempt] if attempt < len(texts[place]) else ""
            found = _free_place(text, points[place], taken, width, height) if text else None
            if found is None:
                without.append(place)
            else:
                label, box = found
                taken.append(box)
                labels.append(label)
        waiting = without
    return labels


Box = tuple[float, float, float, float]


def _free_place(
    text: str, point: tuple[float, float], taken: Sequence[Box], width: float, height: float
) -> tuple[Label, Box] | None:
    x, y = point
    line, wide = TEXT_SIZE + 3, len(text) * LETTER
    tries: tuple[tuple[float, float, Literal["left", "right", "center"], float], ...] = (
        (x + GAP, y, "left", x + GAP),
        (x - GAP, y, "right", x - GAP - wide),
        (x, y - GAP - line / 2, "center", x - wide / 2),
        (x, y + GAP + line / 2, "center", x - wide / 2),
    )
    for at_x, at_y, align, left in tries:
        box = (left, at_y - line / 2, left + wide, at_y + line / 2)
        inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= height
        if inside and not any(_overlap(box, other) for other in taken):
            return Label(text, at_x, at_y, align), box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
