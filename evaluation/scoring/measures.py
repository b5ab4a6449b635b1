"""The measures by which runs are scored: one object each, with all that is specific to it.

Keys are those of ir-measures where it has the measure ("AP", "nDCG@50", "RR@50", "P@50", "R@50",
"Success@50", "ERR@50", "Rprec", "Bpref", "RBP", "Judged@50"). "CappedR@50" is recall over
min(k, R), and "AP@R" is what the literature of metric learning calls mAP@R. AP@k is normalized as
INQUIRE's, by min(k, R); ir-measures' AP@k, normalized by R, is "UncappedAP@50" here.
"RBPresidual" is how much of RBP is unknown. `evaluation.scoring.metrics` has the formulas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from evaluation.scoring import expectations, metrics
from evaluation.scoring.metrics import Floats, HitRanks, Integers
from evaluation.scoring.tied_groups import TiedGroups

DEFAULT_CUTS: Final = (1, 5, 10, 50, 100)
#: No run is deeper than this.
MAX_CUT: Final = 10_000_000
_KEY: Final = re.compile(r"([A-Za-z]+)@([1-9][0-9]{0,7})")


@dataclass(frozen=True, slots=True)
class Graded:
    """The ranks of images with a gain above 0."""

    hits: HitRanks
    """(s, r)"""
    gains: Integers
    """(h,) the gains of the hits."""
    all_gains: list[Integers]
    """The gains of every judged image, for each of the s queries."""


@dataclass(frozen=True, slots=True)
class RunRanks:
    """The ranks of images in the rankings of r runs for s queries, down to what measures need."""

    hits: HitRanks
    """(s, r) of relevant images."""
    judged: HitRanks
    """(s, r) of judged images."""
    totals: Integers
    """(s, 1) how many images of each query are relevant."""
    judged_totals: Integers
    """(s, 1) how many were judged."""
    graded: Graded | None
    """None where there are no gains."""


@dataclass(frozen=True, slots=True)
class Chance:
    """What determines the expectation for a random order; arrays of shape (s,)."""

    totals: Integers
    judged_totals: Integers
    sizes: Integers
    """How many images are put in order."""
    all_gains: list[Integers] | None
    """The gains of every judged image of each query; None where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """A measure at any cut-off, or one without a cut-off; `KINDS` has them all."""

    name: str
    title: str = "Others"
    """The heading under which people find it where they choose a measure."""
    source: str
    """The paper, with its section where that helps, or the program that defines it."""
    score: Callable[[RunRanks, list[int]], Floats]
    """The scores (s, r, c) at c cut-offs; without a cut-off (s, r), and the list is empty."""
    chance: Callable[[Chance, list[int]], Floats] | None
    """The expectation (s, c), or (s,), over all orders of the corpus; None: not known."""
    tied_mean: Callable[[TiedGroups, int, int], float] | None
    """One query's mean over all orders of images with equal scores, from the groups of these, the
    cut-off (without one, the ranking's length) and R; None: it has no closed form here."""
    has_cut: bool = True
    mean: str = ""
    """The name of the mean over queries, without the cut-off; empty: the measure's name."""
    headline: str = ""
    """For measures that INQUIRE's tables report: the tables' name of the mean over whole fixed
    lists. Empty for all others."""
    more_is_better: bool = True
    """False for measures of how far the labels cover a ranking, not of how good it is."""
    in_percent: bool = True
    """Whether people read it in percent rather than from 0 to 1."""
    graded: bool = False
    """Whether it uses gains where there are some."""
    needs_judged: bool = False
    """Whether it depends on which images were judged, not only on which are relevant."""
    within_r: bool = False
    """Whether it depends on the first R images only."""

    @property
    def pattern(self) -> str:
        """Its key, with "k" for a cut-off: "AP@k"."""
        return f"{self.name}@k" if self.has_cut else self.name


_Score = Callable[[RunRanks, list[int]], Floats]
_Expectation = Callable[[Chance, list[int]], Floats]


def _by_hits(metric: Callable[[HitRanks, list[int]], Floats]) -> _Score:
    return lambda ranks, ks: metric(ranks.hits, ks)


def _by_hits_and_totals(metric: Callable[[HitRanks, Integers, list[int]], Floats]) -> _Score:
    return lambda ranks, ks: metric(ranks.hits, ranks.totals, ks)


def _without_cut(metric: Callable[[HitRanks, Integers], Floats]) -> _Score:
    return lambda ranks, _: metric(ranks.hits, ranks.totals)


def _random(expectation: Callable[[Integers, Integers, list[int]], Floats]) -> _Expectation:
    return lambda chance, ks: expectation(chance.totals, chance.sizes, ks)


def _random_without_cut(expectation: Callable[[Integers, Integers], Floats]) -> _Expectation:
    return lambda chance, _: expectation(chance.totals, chance.sizes)


def _ndcg(ranks: RunRanks, ks: list[int]) -> Floats:
    if ranks.graded is None:
        return metrics.ndcg_at_k(ranks.hits, ranks.totals, ks)
    return metrics.graded_ndcg_at_k(
        ranks.graded.hits, ranks.graded.gains, ranks.graded.all_gains, ks
    )


def _random_ndcg(chance: Chance, ks: list[int]) -> Floats:
    if chance.all_gains is None:
        return expectations.random_ndcg_at_k(chance.totals, chance.sizes, ks)
    return expectations.random_graded_ndcg_at_k(chance.all_gains, chance.sizes, ks)


def _expected_reciprocal_rank(ranks: RunRanks, ks: list[int]) -> Floats:
    if ranks.graded is None:
        return metrics.expected_reciprocal_rank_at_k(ranks.hits, ks)
    return metrics.graded_expected_reciprocal_rank_at_k(ranks.graded.hits, ranks.graded.gains, ks)


_KINDS: Final = (
    Kind(
        name="AP",
        title="Average precision",
        source="Vendrow et al. 2024 (INQUIRE), section 5 and appendix G",
        score=_by_hits_and_totals(metrics.average_precision_at_k),
        chance=_random(expectations.random_average_precision_at_k),
        tied_mean=lambda tied, k, total: tied.precision_sum(k) / min(k, total),
        mean="mAP",
        headline="AP",
    ),
    Kind(
        name="nDCG",
        title="Discounted cumulative gain",
        source="Järvelin and Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques",
        score=_ndcg,
        chance=_random_ndcg,
        tied_mean=lambda tied, k, _: tied.discounted_gain(k),
        headline="nDCG",
        graded=True,
    ),
    Kind(
        name="RR",
        title="Reciprocal rank",
        source="Vendrow et al. 2024 (INQUIRE), section 5",
        score=_by_hits(metrics.reciprocal_rank_at_k),
        chance=_random(expectations.random_reciprocal_rank_at_k),
        tied_mean=lambda tied, k, _: tied.reciprocal_rank(k),
        mean="MRR",
        headline="MRR",
        in_percent=False,
    ),
    Kind(
        name="P",
        title="Precision",
        source="trec_eval, P",
        score=_by_hits(metrics.precision_at_k),
        chance=_random(expectations.random_precision_at_k),
        tied_mean=lambda tied, k, _: tied.hits_at(k) / k,
    ),
    Kind(
        name="R",
        title="Recall",
        source="trec_eval, recall",
        score=_by_hits_and_totals(metrics.recall_at_k),
        chance=_random(expectations.random_recall_at_k),
        tied_mean=lambda tied, k, total: tied.hits_at(k) / total,
    ),
    Kind(
        name="CappedR",
        title="Recall over min(k, R)",
        source="Thakur et al. 2021 (BEIR), capped recall",
        score=_by_hits_and_totals(metrics.capped_recall_at_k),
        chance=_random(expectations.random_capped_recall_at_k),
        tied_mean=lambda tied, k, total: tied.hits_at(k) / min(k, total),
    ),
    Kind(
        name="Success",
        title="Hit among the first k",
        source="trec_eval, success",
        score=_by_hits(metrics.success_at_k),
        chance=_random(expectations.random_success_at_k),
        tied_mean=lambda tied, k, _: float(tied.first_hits()[:k].sum()),
        mean="hit",
    ),
    Kind(
        name="UncappedAP",
        title="Average precision over R",
        source="trec_eval, map_cut",
        score=_by_hits_and_totals(metrics.uncapped_average_precision_at_k),
        chance=_random(expectations.random_uncapped_average_precision_at_k),
        tied_mean=lambda tied, k, total: tied.precision_sum(k) / total,
        mean="uncapped mAP",
    ),
    Kind(
        name="ERR",
        title="Expected reciprocal rank",
        source="Chapelle et al. 2009, Expected reciprocal rank for graded relevance",
        score=_expected_reciprocal_rank,
        chance=None,
        tied_mean=None,
        graded=True,
    ),
    Kind(
        name="Judged",
        title="Share of judged images",
        source="ir-measures, Judged",
        score=lambda ranks, ks: metrics.judged_at_k(ranks.judged, ks),
        chance=lambda chance, ks: expectations.random_judged_at_k(
            chance.judged_totals, chance.sizes, ks
        ),
        tied_mean=lambda tied, k, _: float(tied.judged[:k].sum()) / k,
        more_is_better=False,
        needs_judged=True,
    ),
    Kind(
        name="Rprec",
        source="trec_eval, Rprec",
        score=_without_cut(metrics.r_precision),
        chance=_random_without_cut(expectations.random_r_precision),
        tied_mean=lambda tied, _, total: tied.hits_at(total) / total,
        has_cut=False,
        within_r=True,
    ),
    Kind(
        name="AP@R",
        source="Musgrave et al. 2020, A metric learning reality check; "
        "Chun et al. 2022 (ECCV Caption)",
        score=_without_cut(metrics.average_precision_at_r),
        chance=_random_without_cut(expectations.random_average_precision_at_r),
        tied_mean=lambda tied, _, total: tied.precision_sum(total) / total,
        has_cut=False,
        mean="mAP@R",
        within_r=True,
    ),
    Kind(
        name="AP",
        title="Average precision",
        source="trec_eval, map",
        score=_without_cut(metrics.average_precision),
        chance=_random_without_cut(expectations.random_average_precision),
        tied_mean=lambda tied, length, total: tied.precision_sum(length) / total,
        has_cut=False,
        mean="mAP",
    ),
    Kind(
        name="Bpref",
        source="Buckley and Voorhees 2004, Retrieval evaluation with incomplete information",
        score=lambda ranks, _: metrics.bpref(
            ranks.hits, ranks.judged, ranks.totals, ranks.judged_totals
        ),
        chance=lambda chance, _: expectations.random_bpref(chance.totals, chance.judged_totals),
        tied_mean=None,
        has_cut=False,
        mean="bpref",
        needs_judged=True,
    ),
    Kind(
        name="RBP",
        source="Moffat and Zobel 2008, Rank-biased precision for measurement of retrieval "
        "effectiveness",
        score=lambda ranks, _: metrics.rank_biased_precision(ranks.hits),
        chance=_random_without_cut(expectations.random_rank_biased_precision),
        tied_mean=lambda tied, _, __: tied.rank_biased_precision(tied.hits),
        has_cut=False,
    ),
    Kind(
        name="RBPresidual",
        source="Moffat and Zobel 2008, Rank-biased precision for measurement of retrieval "
        "effectiveness",
        score=lambda ranks, _: metrics.rank_biased_residual(ranks.judged),
        chance=lambda chance, _: expectations.random_rank_biased_residual(
            chance.judged_totals, chance.sizes
        ),
        tied_mean=lambda tied, _, __: 1.0 - tied.rank_biased_precision(tied.judged),
        has_cut=False,
        mean="RBP residual",
        more_is_better=False,
        needs_judged=True,
    ),
)
#: Every kind by its pattern, in the order in which measures are listed.
KINDS: Final = {kind.pattern: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of measure with its cut-off. ValueError: no such kind, or a cut-off that doesn't fit
    it."""

    name: str
    k: int | None = None
    """The cut-off, from 1 to MAX_CUT; None for a kind without. AP is of both kinds."""

    def __post_init__(self) -> None:
        pattern = self.name if self.k is None else f"{self.name}@k"
        if pattern not in KINDS:
            raise ValueError(f"There is no measure {pattern!r}.")
        if self.k is not None and not 1 <= self.k <= MAX_CUT:
            raise ValueError(f"{self.name} needs a cut-off from 1 to {MAX_CUT}, not {self.k}.")

    @property
    def kind(self) -> Kind:
        """The kind of measure, without the cut-off."""
        return KINDS[self.name if self.k is None else f"{self.name}@k"]

    @property
    def key(self) -> str:
        """Its name with the cut-off, e.g. "AP@50"."""
        return self._at_cut(self.name)

    @property
    def mean_name(self) -> str:
        """The name of the mean over queries: "mAP@50", "MRR@50", "hit@5"; else the key."""
        return self._at_cut(self.kind.mean or self.name)

    def _at_cut(self, name: str) -> str:
        return name if self.k is None else f"{name}@{self.k}"

    def __str__(self) -> str:
        return self.key


def parse_measure(text: str) -> Measure:
    """The measure of a key; ValueError, which lists the keys, for any other text."""
    key = text.strip()
    match = _KEY.fullmatch(key)
    if match is not None and f"{match[1]}@k" in KINDS:
        return Measure(match[1], int(match[2]))
    if key in KINDS and not KINDS[key].has_cut:
        return Measure(key)
    keys = ", ".join(KINDS)
    raise ValueError(f"There is no measure {text[:40]!r}; there are {keys} (k from 1).")


def parse_measures(texts: Iterable[str]) -> tuple[Measure, ...]:
    """The measures of keys, in their order, without repeats. ValueError as `parse_measure`."""
    return tuple(dict.fromkeys(map(parse_measure, texts)))


DEFAULT_MEASURES: Final[tuple[Measure, ...]] = tuple(
    Measure(kind.name, k)
    for kind in KINDS.values()
    for k in (DEFAULT_CUTS if kind.has_cut else (None,))
)
#: The cut-offs of INQUIRE's tables by a run's task: over the corpus, and over whole fixed lists.
HEADLINE_CUTS: Final = {"full": 50, "rerank": 100}
#: The keys of the measures of INQUIRE's tables, by a run's task; the first sorts a table.
HEADLINES: Final = {
    task: tuple(Measure(kind.name, k).key for kind in KINDS.values() if kind.headline)
    for task, k in HEADLINE_CUTS.items()
}


def mean_title(key: str, task: str = "full") -> str:
    """What a task's pages call the mean of a measure: "mAP@50".

    Measures over the whole of the fixed lists are called without their cut-off, as in the paper.
    """
    measure = parse_measure(key)
    whole = task == "rerank" and key in HEADLINES[task]
    return measure.kind.headline if whole else measure.mean_name
