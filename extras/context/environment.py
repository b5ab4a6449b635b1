"""Environment beside place and month: numeric columns of a table, by image or by place."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.csv_rows import RowError, csv_rows
from core.errors import Conflict, FileRefused
from core.files import open_regular
from retrieval.corpus.models import Image

BY_IMAGE: Final = {"image_id": "pk", "file_name": "file_name", "source_id": "source_id"}
BY_PLACE: Final = ("latitude", "longitude")
#: Kilometers from a place to the nearest row, where nothing else is said.
FARTHEST: Final = 10.0
EARTH: Final = 6371.0
AT_A_TIME: Final = 4096

Floats = NDArray[np.float64]


@dataclass(slots=True)
class Environment:
    """The table, standardized."""

    about: dict[str, Any]
    """What a model's folder keeps: `columns`, their `means` and `deviations` in the table of the
    training, and `farthest_km`."""
    values: Floats
    """(rows + 1, c), 0 where a value isn't known; the last row is that of images without one."""
    field: str
    """Of Image, by which a row is found; empty where it is the nearest."""
    rows: Any
    """Numbers of rows by that field, or a tree of places."""
    images: int = 0
    """That were looked up."""
    found: int = 0

    def beside(self, ids: NDArray[np.int64], places: Floats) -> Floats:
        """(n, 2 + c): places (n, 2) of images (n,), and their columns."""
        at = np.full(len(ids), len(self.values) - 1)
        if self.field:
            images = Image.objects.filter(pk__in=ids.tolist()).values_list("pk", self.field)
            names = dict(images)
            at[:] = [self.rows.get(str(names.get(pk)), at[0]) for pk in ids.tolist()]
        elif (known := np.isfinite(places).all(axis=1)).any():
            most = 2 * np.sin(min(self.about["farthest_km"] / EARTH, np.pi) / 2)
            _, at[known] = self.rows.query(_on_sphere(places[known]), distance_upper_bound=most)
        self.images += len(ids)
        self.found += int((at < len(self.values) - 1).sum())
        return np.hstack([places, self.values[at]])


def environment_read(path: Path, about: dict[str, Any]) -> Environment:
    """The table for a model's `about`. That of a new model has `farthest_km`, and `columns`, empty
    for all that are neither of BY_IMAGE nor of BY_PLACE; means and deviations are added to it.

    Raises FileRefused for what can't be read, Conflict for a new model's column without two values,
    or where no image has a row.
    """
    errors: list[RowError] = []
    names: dict[str, int] = {}
    numbers: list[list[float | None]] = []
    keys, key, columns = (*BY_IMAGE, *BY_PLACE), "", list(about["columns"])
    try:
        file = open_regular(path)
    except OSError as error:
        raise Conflict(f"{path}: {error.strerror}") from error
    with file as lines:
        for line, row in csv_rows(
            lines, name=path.name, required=columns, optional=keys, errors=errors, others=True
        ):
            key = next((one for one in BY_IMAGE if one in row), "")
            if not key and not row.keys() >= {*BY_PLACE}:
                message = f"one of {', '.join(BY_IMAGE)}, or {' and '.join(BY_PLACE)} is needed"
                errors.append(RowError(path.name, 1, "", message))
                break
            columns = columns or [one for one in row if one not in keys]
            if key and names.setdefault(row[key].strip(), len(numbers)) < len(numbers):
                errors.append(RowError(path.name, line, key, "an earlier row has the same"))
            numbers.append([_number(row[one]) for one in (*columns, *(() if key else BY_PLACE))])
            if None in numbers[-1]:
                column = (*columns, *BY_PLACE)[numbers[-1].index(None)]
                errors.append(RowError(path.name, line, column, "a number is needed, or nothing"))
    if errors:
        raise FileRefused(errors)
    table = np.array(numbers, np.float64).reshape(len(numbers), len(columns) + (0 if key else 2))
    if not key:
        table = table[np.isfinite(table[:, -2:]).all(axis=1)]
    values = np.ma.masked_invalid(table[:, : len(columns)])
    if "means" not in about:
        for column, known in zip(columns, values.T, strict=True):
            if len(np.unique(known.compressed())) < 2:
                raise Conflict(f"{column} has no two values in {path.name}.")
        about = {**about, "columns": columns, "means": values.mean(axis=0).tolist()}
        about["deviations"] = values.std(axis=0).tolist()
    standard = ((values - about["means"]) / about["deviations"]).filled(0)
    rows: Any = names
    if not key:
        from scipy.spatial import cKDTree

        rows = cKDTree(_on_sphere(table[:, -2:]))
    standard = np.vstack([standard, np.zeros(len(columns))])
    environment = Environment(about, standard, BY_IMAGE.get(key, ""), rows)
    images = Image.objects.order_by("pk").values_list("pk", *BY_PLACE).iterator()
    while not environment.found:
        if not (some := list(islice(images, AT_A_TIME))):
            raise Conflict(f"No image of the corpus has a row in {path.name}.")
        ids, *places = zip(*some, strict=True)
        environment.beside(np.array(ids), np.array(places, np.float64).T)
    environment.images = environment.found = 0
    return environment


def _number(text: str) -> float | None:
    """NaN where it isn't known, None where the text is no number."""
    if text.strip().lower() in ("", "na", "nan"):
        return nan
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _on_sphere(places: Floats) -> Floats:
    """(n, 3) of the unit sphere."""
    north, east = np.radians(places).T
    level = np.cos(north)
    return np.stack([level * np.cos(east), level * np.sin(east), np.sin(north)], axis=1)
