"""How far a reader is to be believed, in figures: its calibrated probabilities against what people
found, and its agreement with people beside theirs with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from extras.reading.calibration import LEAST, Flags, Floats, cross_fitted, require_enough
from labeling.certificates.bounds import sensitivity_at_least as share_at_least
from labeling.judging.agreement import Pattern, agreement_of
from labeling.judging.reliability import Reliability, reliability
from labeling.queries.categories import CATEGORIES, SUPERCATEGORIES

Judged = np.recarray[tuple[int], np.dtype[np.void]]

#: Of an image that a reader has read and people have judged.
JUDGED: Final = np.dtype(
    [
        ("query", np.int64),
        ("image", np.int64),
        ("category", "U60"),
        ("said", np.float64),  # the reader's probability
        ("relevant", np.bool_),  # the label
        ("drawn", np.bool_),  # by an audit, among all that nobody had judged
        ("brought", np.bool_),  # to people, by what a reader said of it
    ]
)
BINS: Final = 10
ALL: Final = "All queries"


@dataclass(frozen=True, slots=True)
class Bin:
    """Images whose calibrated probabilities lie in one of BINS equal parts of 0..1."""

    images: int
    calibrated: float
    """The mean of these probabilities."""
    found: float
    """The share of relevant images."""
    low: float
    high: float
    """Its exact 95 % interval (Clopper and Pearson 1934)."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well a reader tells some images apart. The constants are those of their own share of
    relevant images, said of each.
    """

    relevant: int
    not_relevant: int
    auc: float | None
    """How often it says more of a relevant image than of another, ties half; None where all are of
    one kind."""
    brier: float
    brier_constant: float
    log_loss: float
    log_loss_constant: float
    bins: list[Bin]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether a reader calls images relevant (a calibrated probability of 0.5 or more) as people
    do.
    """

    of: str
    """ALL, a supercategory or a category."""
    relevant: int
    not_relevant: int
    labels: Reliability
    """Of the reader with the labels."""
    reader: Reliability | None
    """Of the reader with one person, on the images that several judged; None where these are too
    few."""
    people: Reliability | None
    """Of one person with another, on the same images; their weights are those of
    `agreement.patterns`."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a reader."""

    judged: Accuracy
    drawn: Accuracy | None
    """Of what audits drew; None below LEAST images."""
    agreement: list[Agreement]


def figures_of(judged: Judged, patterns: Sequence[Pattern]) -> Figures:
    """The figures of a reader by images (n,) of type JUDGED; `patterns` are of single images.

    Calibrated probabilities are by curves of other queries (`cross_fitted`), AUC is by what the
    reader said. TooFew.
    """
    require_enough(judged.relevant)
    calibrated = cross_fitted(judged.said, judged.relevant, judged.query)
    enough_drawn = np.count_nonzero(judged.drawn) >= LEAST
    return Figures(
        _accuracy(judged, calibrated),
        _accuracy(judged[judged.drawn], calibrated[judged.drawn]) if enough_drawn else None,
        list(_agreement(judged, calibrated >= 0.5, patterns)),
    )


def _accuracy(judged: Judged, calibrated: Floats) -> Accuracy:
    from scipy.special import entr

    relevant = judged.relevant
    positive, share = int(np.count_nonzero(relevant)), float(relevant.mean())
    pairs = positive * (len(relevant) - positive)
    level = np.unique(judged.said, return_inverse=True)[1]
    yes, no = np.bincount(level, relevant), np.bincount(level, ~relevant)
    return Accuracy(
        relevant=positive,
        not_relevant=len(relevant) - positive,
        auc=float(yes @ (no.cumsum() - no / 2)) / pairs if pairs else None,
        brier=float(np.mean((calibrated - relevant) ** 2)),
        brier_constant=share * (1 - share),
        log_loss=float(-np.log(np.where(relevant, calibrated, 1 - calibrated)).mean()),
        log_loss_constant=float(entr(share) + entr(1 - share)),
        bins=list(_bins(calibrated, relevant)),
    )


def _bins(calibrated: Floats, relevant: Flags) -> Iterator[Bin]:
    places = (calibrated * BINS).astype(np.int64)
    for place in np.unique(places):
        there = relevant[places == place]
        mean, positive = float(calibrated[places == place].mean()), int(there.sum())
        low, above = (
            share_at_least(hits, len(there), confidence=0.975)
            for hits in (positive, len(there) - positive)
        )
        yield Bin(len(there), mean, float(there.mean()), low, 1 - above)


def _agreement(judged: Judged, calls: Flags, patterns: Sequence[Pattern]) -> Iterator[Agreement]:
    """The rows with enough images of either kind."""
    pairs = zip(judged.query.tolist(), judged.image.tolist(), strict=True)
    places = {pair: place for place, pair in enumerate(pairs)}
    shared = [
        (places[pattern.query, pattern.image], pattern)
        for pattern in patterns
        if pattern.weight and (pattern.query, pattern.image) in places
    ]
    for name, group in _groups(judged.category):
        there = group & ~judged.brought
        images = judged[there]
        if not _enough(images.relevant):
            continue
        several = [(place, pattern) for place, pattern in shared if there[place]]
        enough = _enough(judged.relevant[[place for place, _ in several]])
        yield Agreement(
            of=name,
            relevant=int(images.relevant.sum()),
            not_relevant=int((~images.relevant).sum()),
            labels=_of_two(calls[there], images.relevant),
            reader=_with_people(calls, several) if enough else None,
            people=agreement_of(pattern for _, pattern in several).all if enough else None,
        )


def _groups(categories: NDArray[np.str_]) -> Iterator[tuple[str, Flags]]:
    """The name of each group of images, and which of them (n,) it has."""
    yield ALL, np.ones(len(categories), np.bool_)
    for supercategory in SUPERCATEGORIES:
        names = [name for name, above in CATEGORIES.items() if above == supercategory]
        yield supercategory, np.isin(categories, names)
        if len(names) > 1:
            yield from ((name, categories == name) for name in names)


def _enough(relevant: Flags) -> bool:
    positive = np.count_nonzero(relevant)
    return bool(min(positive, len(relevant) - positive) >= LEAST)


def _with_people(calls: Flags, several: list[tuple[int, Pattern]]) -> Reliability:
    """Of the reader and each person who judged images, by their place among the calls. The interval
    takes the judgments of an image for independent, and so is a little narrow.
    """
    pairs = [
        (calls[place], says, pattern.weight)
        for place, pattern in several
        for says in pattern.says.values()
    ]
    one, other, weights = np.array(pairs).T
    return _of_two(one, other, weights)


def _of_two(one: ArrayLike, other: ArrayLike, weights: ArrayLike | None = None) -> Reliability:
    """Of two raters who call images (n,) relevant or not."""
    positive = np.add(one, other, dtype=np.float64)
    return reliability(np.column_stack([2 - positive, positive]), weights)
