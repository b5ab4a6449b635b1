"""Which differences between runs are significant: intervals, tests, groups of runs, correlation.

`scores` are per-query scores of one measure, float64 (r, q): r runs on the same q queries. All
random numbers come from a seed, so that the same scores always give the same answer. `error` is how
far a score can be from its exact value (`rounding.score_error`), by default of any measure: what is
equal on paper counts as equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluation.scoring.rounding import UNIT, score_error, settled

Floats = npt.NDArray[np.float64]

LEVEL: Final = 0.95
ALPHA: Final = 0.05
SEED: Final = 20_240_607
#: Bootstrap samples, and the fewest sign flips that are drawn.
SAMPLES: Final = 10_000
#: The number of flips that are expected to be as far from 0 as a difference that is just
#: significant at the corrected level.
_FLIPS_AT_LEVEL: Final = 4
#: Products (runs or queries x samples) that are held at a time.
_BLOCK: Final = 4_000_000
#: Of any measure.
_ERROR: Final = score_error()

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def bootstrap_intervals(
    scores: npt.ArrayLike,
    *,
    level: float = LEVEL,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Floats:
    """Confidence intervals of means over queries: (..., 2), low and high, of scores (..., q).

    The percentile bootstrap: queries are drawn with replacement, the same ones for all runs, and
    the interval holds the middle `level` of the means. One query gives an interval of width 0, no
    query NaN. Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13;
    for means over topics Sakai 2006. ValueError: a level outside (0, 1), or no samples.
    """
    table = np.asarray(scores, dtype=np.float64)
    if not 0 < level < 1 or samples < 1:
        raise ValueError("The level must be between 0 and 1, with at least one sample.")
    queries = table.shape[-1]
    if not queries:
        return np.full((*table.shape[:-1], 2), np.nan)
    flat = table.reshape(-1, queries)
    means = np.empty((len(flat), samples))
    for part, times in resamples(queries, samples=samples, seed=seed):
        means[:, part] = flat @ times.T.astype(np.float64) / queries
    tail = (1 - level) / 2
    limits = np.quantile(means, [tail, 1 - tail], axis=1).T
    return limits.reshape(*table.shape[:-1], 2)


def resamples(
    queries: int, *, samples: int = SAMPLES, seed: int = SEED
) -> Iterator[tuple[slice, npt.NDArray[np.int64]]]:
    """Blocks of the samples of queries by which `bootstrap_intervals` goes: which samples, and how
    often each query is drawn in each of them, (b, q)."""
    random = np.random.default_rng(seed)
    for part in _blocks(samples, queries):
        count = part.stop - part.start
        drawn = random.integers(queries, size=(count, queries))
        drawn += np.arange(count)[:, np.newaxis] * queries
        times = np.bincount(drawn.reshape(-1), minlength=count * queries)
        yield part, times.reshape(count, queries)


def settled_differences(first: npt.ArrayLike, second: npt.ArrayLike, error: float) -> Floats:
    """(q,) the first run's scores less the second's; those that are equal on paper, but for the
    sign, have the same size, and none is 0 by rounding alone or misses it so."""
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    sizes = settled(np.concatenate([[0.0], np.abs(differences)]), 4 * error)[1:]
    return np.copysign(sizes, differences)


def randomization_test(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    samples: int = SAMPLES,
    seed: int = SEED,
    error: float = _ERROR,
) -> float:
    """The two-sided p-value of two runs' difference in the mean, both (q,).

    The paired randomization test: if the runs were equal, each query's difference could as well
    have the other sign. p is the proportion of sign flips whose mean difference is at least as far
    from 0 as the observed one. If there are at most `samples` flips, 2^q, all are tried, which is
    exact; else `samples` random flips plus the observed signs give (c + 1) / (samples + 1). Runs
    without any difference, or no queries, give 1. Source: Smucker, Allan and Carterette 2007, "A
    Comparison of Statistical Significance Tests for Information Retrieval Evaluation".
    """
    pair = np.stack([np.asarray(first, np.float64), np.asarray(second, np.float64)])
    return float(pairwise_p_values(pair, samples=samples, seed=seed, error=error)[0, 1])


def t_test(first: npt.ArrayLike, second: npt.ArrayLike, *, error: float = _ERROR) -> float:
    """The two-sided p-value of Student's paired t-test of two runs, both (q,); 1 without any
    difference, and with fewer than two queries. Source: Sakai 2014, "Statistical Reform in
    Information Retrieval?".
    """
    differences = settled_differences(first, second, error)
    if len(differences) < 2 or not differences.any():
        return 1.0
    if (differences == differences[0]).all():
        return 0.0
    # scipy.stats is imported where it is used, since it takes a second.
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(differences, 0.0).pvalue)


def wilcoxon_test(first: npt.ArrayLike, second: npt.ArrayLike, *, error: float = _ERROR) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test of two runs, both (q,); 1 without any
    difference. Queries without a difference are left out. Source: Wilcoxon 1945, "Individual
    Comparisons by Ranking Methods".
    """
    differences = settled_differences(first, second, error)
    if not differences.any():
        return 1.0
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences[differences != 0]).pvalue)


def tau_b(first: list[float], second: list[float]) -> float | None:
    """Kendall's tau-b, whether two lists of the same length put their items in the same order; None
    where it isn't defined. Means that are equal on paper must be the same number (`settled`).
    Source: Kendall 1945 for the variant b, which allows for ties.
    """
    if len(first) < 2 or len(set(first)) < 2 or len(set(second)) < 2:
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(first, second, variant="b").statistic)


def pairwise_p_values(
    scores: npt.ArrayLike,
    *,
    samples: int | None = None,
    seed: int = SEED,
    error: float = _ERROR,
) -> Floats:
    """The p-values (r, r) of `randomization_test` for each pair of runs; 1 on the diagonal.

    All pairs share the sign flips. With `samples` None, enough are drawn for a difference to be
    significant after Holm's correction for all pairs: SAMPLES, or 4 pairs / ALPHA if that is more.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"scores must be (runs, queries), not of shape {table.shape}")
    runs, queries = table.shape
    pairs = runs * (runs - 1) // 2
    if samples is None:
        samples = max(SAMPLES, math.ceil(_FLIPS_AT_LEVEL * pairs / ALPHA))
    first, second = np.triu_indices(runs, 1)
    p_values = np.ones((runs, runs))
    if not queries or not pairs:
        return p_values
    # Of two sums of scores, and of two of flipped ones.
    margin = 4 * queries * (error + queries * UNIT)
    sums = table.sum(axis=1)
    observed = np.abs(sums[first] - sums[second]) - margin
    exact = queries < 60 and 2**queries <= samples
    reached = np.zeros(pairs, dtype=np.int64)
    for signs in _signs(queries, 2**queries if exact else samples, exact, seed):
        # Flipping a difference equals the difference of the flipped scores.
        flipped = table @ signs
        for run in range(runs - 1):
            rows = slice(run * runs - run * (run + 1) // 2, (run + 1) * (2 * runs - run - 2) // 2)
            far = np.abs(flipped[run + 1 :] - flipped[run]) >= observed[rows, np.newaxis]
            reached[rows] += np.count_nonzero(far, axis=1)
    values = reached / 2**queries if exact else (reached + 1) / (samples + 1)
    p_values[first, second] = p_values[second, first] = values
    return p_values


def holm(p_values: npt.ArrayLike) -> Floats:
    """p-values (m,) corrected for m tests: a test is significant if its value is at most alpha.

    The i-th smallest is multiplied by m - i + 1, made no smaller than the one before, and capped at
    1. Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    raised = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(raised, 1.0)
    return corrected


def significant_pairs(
    scores: npt.ArrayLike, *, alpha: float = ALPHA, seed: int = SEED, error: float = _ERROR
) -> npt.NDArray[np.bool_]:
    """(r, r), symmetric: which runs the test distinguishes, with Holm's correction for all
    pairs."""
    p_values = pairwise_p_values(scores, seed=seed, error=error)
    upper = np.triu_indices(len(p_values), 1)
    differs = np.zeros(p_values.shape, dtype=np.bool_)
    differs[upper] = holm(p_values[upper]) <= alpha
    return differs | differs.T


def groups(
    scores: npt.ArrayLike, *, alpha: float = ALPHA, seed: int = SEED, error: float = _ERROR
) -> list[list[int]]:
    """Groups of runs that don't differ significantly, each the runs' indexes by falling mean.

    Two runs share a group if and only if the test, with Holm's correction, finds no difference; a
    run may be in several groups. Groups are sorted by their best run, then their second and so on.
    See `letters` for the compact letter display.
    """
    table = np.asarray(scores, dtype=np.float64)
    apart = significant_pairs(table, alpha=alpha, seed=seed, error=error)
    return grouped(apart, _by_mean(table, error))


def grouped(apart: npt.ArrayLike, order: Sequence[int] | npt.NDArray[np.int64]) -> list[list[int]]:
    """The groups for pairs that differ, `apart` (r, r); runs in `order`, best first.

    Insert and absorb: begin with all runs in one group; for each pair that differs, replace every
    group that holds both runs by two copies, each without one of them; drop groups that lie within
    another. The remaining groups are the largest sets without a pair that differs; there are few if
    runs differ mainly along one dimension. Source: Piepho 2004, "An Algorithm for a Letter-Based
    Representation of All-Pairwise Comparisons".
    """
    by_mean = np.asarray(order, dtype=np.int64)
    differs = np.asarray(apart, dtype=np.bool_)[by_mean][:, by_mean]
    runs = len(differs)
    # Each group is a number whose bit i stands for the i-th run in order.
    sets = [(1 << runs) - 1] if runs else []
    for first, second in zip(*np.nonzero(np.triu(differs, 1)), strict=True):
        pair = 1 << int(first) | 1 << int(second)
        split = [group for group in sets if group & pair == pair]
        sets = [group for group in sets if group & pair != pair]
        for group in split:
            for part in (group & ~(1 << int(first)), group & ~(1 << int(second))):
                if not any(part & larger == part for larger in sets):
                    sets = [larger for larger in sets if larger & part != larger]
                    sets.append(part)
    members = sorted(
        [position for position in range(runs) if group >> position & 1] for group in sets
    )
    return [by_mean[group].tolist() for group in members]


def letters(groups: Sequence[Sequence[int]], runs: int) -> list[str]:
    """The letters of each run: "a" for the first group, "b" for the second, …, "aa" after "z".

    Two runs share a letter if and only if they share a group. A run's letters are joined, with "."
    between them if some group's letter has several characters.
    """
    names = [_letter(number) for number in range(len(groups))]
    joint = "." if len(groups) > len(_LETTERS) else ""
    return [
        joint.join(name for name, group in zip(names, groups, strict=True) if run in group)
        for run in range(runs)
    ]


def _letter(number: int) -> str:
    name = ""
    while number >= 0:
        number, last = divmod(number, len(_LETTERS))
        name = _LETTERS[last] + name
        number -= 1
    return name


def _by_mean(table: Floats, error: float) -> npt.NDArray[np.int64]:
    """The runs by falling mean, and by index where means are equal."""
    queries = table.shape[1]
    if not queries:
        return np.arange(len(table))
    means = settled(table.mean(axis=1), 2 * (error + queries * UNIT))
    return np.argsort(-means, kind="stable")


def _signs(queries: int, count: int, every: bool, seed: int) -> Iterator[Floats]:
    """Blocks (q, b) of signs, `count` in all: every combination of them, or random ones."""
    random = np.random.default_rng(seed)
    for part in _blocks(count, queries):
        size = part.stop - part.start
        bits: npt.NDArray[np.integer]
        if every:
            bits = np.arange(part.start, part.stop) >> np.arange(queries)[:, np.newaxis] & 1
        else:
            drawn = np.frombuffer(random.bytes(-(-queries * size // 8)), dtype=np.uint8)
            bits = np.unpackbits(drawn)[: queries * size].reshape(queries, size)
        yield bits.astype(np.float64) * 2 - 1


def _blocks(count: int, width: int) -> Iterator[slice]:
    """Slices of `range(count)`, each of about _BLOCK / width."""
    size = max(1, _BLOCK // max(width, 1))
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))
