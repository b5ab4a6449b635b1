"""Reading ECCV Caption: captions of MS-COCO as queries, all of the test split.

    eccv_caption_to_image.json   caption id -> ids of its relevant images
    captions_val2014.json        COCO's captions; without it a query's text is its caption's id
    mturk_parsed.csv             what people said of the pairs that five models proposed; without it
                                 nobody knows which other images were judged, nor any grade

The first is in the Python package eccv-caption (its folder `data`), the second in COCO's
annotations of 2014, the third in the authors' full data. In mturk_parsed.csv, cid and iid are the
caption and the image, and annotation is 1 (100% yes), 2 (partially yes), 3 (mostly no) or 4 (100%
no). Source: Chun et al. 2022, "ECCV Caption", sections 3.2 and 3.3.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from core.csv_rows import MAX_ERRORS, RowError, csv_rows
from core.files import open_regular
from core.ids import id_of
from labeling.judging.grades import LEAST_RELEVANT
from labeling.queries.files import query_row
from releases.importing.layout import (
    ANNOTATIONS,
    JUDGMENTS,
    LISTED,
    Layout,
    LayoutQuery,
    Rows,
)

PAIRS_FILE: Final = "eccv_caption_to_image.json"
CAPTIONS_FILE: Final = "captions_val2014.json"
GRADES_FILE: Final = "mturk_parsed.csv"
CATEGORY: Final = "COCO captions"
#: "Yes" and "weak yes" are the positives of the paper.
BINARIZATION: Final = "partly"
#: annotation -> grade.
_GRADES: Final = {"1": 3, "2": 2, "3": 1, "4": 0}

Grades = dict[tuple[int, int], list[int]]


def is_eccv(directory: Path) -> bool:
    """Whether a directory holds ECCV Caption."""
    return (directory / PAIRS_FILE).is_file()


def read_eccv(directory: Path, errors: list[RowError]) -> Layout:
    """Read it whole; what is wrong goes to `errors`, by file and line or id. OSError: a file can't
    be read."""
    relevant, negatives = Rows(ANNOTATIONS), Rows(ANNOTATIONS)
    positives = _positives(directory, errors)
    texts = _texts(directory, errors)
    grades = _grades(directory, errors)
    for caption, images in positives.items():
        for image in images:
            grade = _grade(grades.pop((caption, image), []), relevant=True)
            relevant.add(caption, image, "", PAIRS_FILE, 1, grade)
    for (caption, image), given in grades.items():
        grade = _grade(given, relevant=False)
        # Of other captions, and of captions and images that the authors left out, nothing is kept.
        if caption in positives and grade is not None:
            negatives.add(caption, image, "", GRADES_FILE, 1, grade)
    layout = Layout(
        queries=_queries(sorted(positives), texts, errors),
        annotations=relevant.table(),
        negatives=negatives.table(),
        judgments=Rows(JUDGMENTS).table(),
        fixed=Rows(LISTED).table(),
        judged_splits={"test"} if len(negatives.table()) else set(),
        grades=BINARIZATION if (directory / GRADES_FILE).is_file() else "",
    )
    if not errors:
        layout.validate_and_join(errors)
    return layout


def _positives(directory: Path, errors: list[RowError]) -> dict[int, list[int]]:
    """Caption -> its relevant images, each once."""
    positives: dict[int, list[int]] = {}
    content = _json(directory, PAIRS_FILE, errors)
    for key, images in content.items() if isinstance(content, dict) else ():
        ids = [_id(image) for image in images] if isinstance(images, list) else [None]
        caption = _id(key)
        if caption is None or None in ids:
            _wrong(errors, PAIRS_FILE, key, "is not an id with a list of ids")
        else:
            positives[caption] = [image for image in dict.fromkeys(ids) if image is not None]
    if not positives and not errors:
        _wrong(errors, PAIRS_FILE, "", "is not a JSON object of captions")
    return positives


def _texts(directory: Path, errors: list[RowError]) -> dict[int, str]:
    """The texts of all captions that COCO's file has, by id."""
    if not (directory / CAPTIONS_FILE).is_file():
        return {}
    content = _json(directory, CAPTIONS_FILE, errors)
    try:
        return {int(row["id"]): str(row["caption"]).strip() for row in content["annotations"]}
    except (TypeError, KeyError, ValueError):
        _wrong(errors, CAPTIONS_FILE, "annotations", "is not a list of objects with id and caption")
        return {}


def _grades(directory: Path, errors: list[RowError]) -> Grades:
    """(caption, image) -> the grades that people gave."""
    grades: Grades = defaultdict(list)
    if not (directory / GRADES_FILE).is_file():
        return grades
    columns = ("cid", "iid", "annotation")
    with open_regular(directory / GRADES_FILE) as file:
        for line, row in csv_rows(
            file, name=GRADES_FILE, required=columns, errors=errors, others=True
        ):
            caption, image = _id(row["cid"].strip()), _id(row["iid"].strip())
            grade = _GRADES.get(row["annotation"].strip())
            # The authors' own reader passes over rows without ids.
            if grade is None:
                message = f"{row['annotation'][:40]!r} is not 1, 2, 3 or 4"
                errors.append(RowError(GRADES_FILE, line, "annotation", message))
            elif caption is not None and image is not None:
                grades[caption, image].append(grade)
    return grades


def _grade(given: list[int], *, relevant: bool) -> int | None:
    """The median, rounded down, of the grades on the side of the label; None without any."""
    own = [grade for grade in given if (grade >= LEAST_RELEVANT[BINARIZATION]) == relevant]
    return int(median(own)) if own else None


def _queries(
    captions: list[int], texts: dict[int, str], errors: list[RowError]
) -> list[LayoutQuery]:
    queries = []
    for place, caption in enumerate(captions):
        fields = {
            "query_id": str(caption),
            "query_text": texts.get(caption, f"COCO caption {caption}"),
            "supercategory": CATEGORY,
            "category": CATEGORY,
        }
        row, problems = query_row(1, fields, "test", vocabulary=False)
        queries.append(LayoutQuery(query=row, row=place))
        for column, message in problems:
            _wrong(errors, CAPTIONS_FILE, f"{caption}, {column}", message)
    return queries


def _json(directory: Path, name: str, errors: list[RowError]) -> Any:
    with open_regular(directory / name) as file:
        try:
            return json.load(file)
        except (ValueError, RecursionError) as error:
            _wrong(errors, name, "", f"is not JSON ({error})")
            return None


def _id(value: Any) -> int | None:
    """An id, which JSON has as a number or as a text."""
    return id_of(value if isinstance(value, str) else json.dumps(value))


def _wrong(errors: list[RowError], name: str, field: str, message: str) -> None:
    if len(errors) < MAX_ERRORS:
        errors.append(RowError(name, 1, field, message))
