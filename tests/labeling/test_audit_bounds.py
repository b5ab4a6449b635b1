"""The bounds against their definitions, counted out with fractions, and against known figures."""

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import comb, exp, inf, isclose

import pytest
from scipy.stats import beta, binom, hypergeom

from labeling.certificates.bounds import (
    AuditRound,
    log_evidence,
    meets_target,
    missing_at_most,
    more_without_hit,
    recall_at_least,
    release_missing_at_most,
    release_recall_at_least,
    relevant_at_most,
    sensitivity_at_least,
)

pytestmark = pytest.mark.pure

THETA = Fraction(1, 5)


def chance(x: int, n: int, m: int, pool: int) -> Fraction:
    """h(x; n, m, U)."""
    if not 0 <= m <= pool or x > m or n - x > pool - m:
        return Fraction(0)
    return Fraction(comb(m, x) * comb(pool - m, n - x), comb(pool, n))


def evidence(rounds: Sequence[AuditRound], relevant: int) -> Fraction | None:
    """E(R); None for infinity."""
    product = Fraction(1)
    for one in rounds:
        pool, n, x = one.unjudged, one.drawn, one.hits
        below = chance(x, n, relevant - one.found, pool)
        if not below:
            return None
        product *= sum((1 - THETA) * THETA**j * chance(x, n, j, pool) for j in range(pool + 1))
        product /= below
    return product


def bound(rounds: Sequence[AuditRound], alpha: Fraction) -> int | None:
    """The largest R with E(R) < 1/α, by trying all; None if there is none."""
    values = {one: evidence(rounds, one) for one in range(rounds[-1].most + 2)}
    return max((r for r, e in values.items() if e is not None and e < 1 / alpha), default=None)


def some_rounds(seed: int, count: int, *, most: int = 40) -> list[list[AuditRound]]:
    """Rounds as people could have made them, with few and with many hits."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        rounds = []
        found, unjudged = draw.randint(0, 8), draw.randint(0, most)
        for _ in range(draw.randint(1, 4)):
            drawn = draw.randint(0, unjudged)
            hits = min(draw.choice([0, 0, 0, 1, 2, drawn]), drawn)
            rounds.append(AuditRound(found, unjudged, drawn, hits))
            elsewhere = draw.randint(0, unjudged - drawn)
            found += hits + draw.randint(0, min(elsewhere, 3))
            unjudged -= drawn + elsewhere
        made.append(rounds)
    return made


@pytest.mark.parametrize("pool", [0, 1, 9, 16])
def test_one_round_equals_its_definition(pool):
    for drawn in range(pool + 1):
        for hits in range(drawn + 1):
            rounds = [AuditRound(3, pool, drawn, hits)]
            for relevant in range(pool + 5):
                exact = evidence(rounds, relevant)
                found = log_evidence(rounds, relevant)
                if exact is None:
                    assert found == inf
                else:
                    assert isclose(exp(found), exact, rel_tol=1e-12)
            assert relevant_at_most(rounds) == bound(rounds, Fraction(1, 20))


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_several_rounds_equal_their_definition(confidence):
    alpha, failed = 1 - Fraction(str(confidence)), 0
    for rounds in some_rounds(1, 100):
        for relevant in range(rounds[-1].most + 2):
            exact = evidence(rounds, relevant)
            assert isclose(
                exp(log_evidence(rounds, relevant)), inf if exact is None else exact, rel_tol=1e-12
            )
        exact_bound = bound(rounds, alpha)
        failed += exact_bound is None
        if exact_bound is None:
            exact_bound = rounds[-1].most
        assert relevant_at_most(rounds, confidence=confidence) == exact_bound
    assert failed or confidence > 0.8


def test_the_rejected_numbers_are_those_above_the_bound():
    """E falls to its minimum and rises from there: what the search rests on."""
    for rounds in some_rounds(2, 150):
        values = [evidence(rounds, r) for r in range(rounds[-1].least, rounds[-1].most + 1)]
        ratios = [after / one for one, after in pairwise(values)]
        assert ratios == sorted(ratios)


def test_each_draw_without_a_hit_lowers_the_bound():
    """So whoever looks after every label sees the strictest bound before the next hit."""
    for rounds in some_rounds(3, 150):
        *earlier, last = rounds
        if bound(rounds, Fraction(1, 20)) is None:
            continue
        bounds = [
            relevant_at_most([*earlier, AuditRound(last.found, last.unjudged, n, last.hits)])
            for n in range(last.drawn, last.unjudged + 1)
        ]
        assert bounds == sorted(bounds, reverse=True)


def test_the_price_is_the_first_number_of_draws_that_certifies():
    priced = 0
    for rounds in some_rounds(4, 150):
        *earlier, last = rounds
        left = last.unjudged - last.drawn
        price = more_without_hit(rounds, found=last.least, target=0.8)
        met = [
            meets_target(
                [*earlier, AuditRound(last.found, last.unjudged, last.drawn + more, last.hits)],
                found=last.least,
                target=0.8,
            )
            for more in range(max(left, 1))
        ]
        assert price == (met.index(True) if True in met else None)
        priced += bool(price)
    assert priced > 20


@pytest.mark.parametrize(
    ("unjudged", "target", "draws", "fixed"),
    [
        (4500, 0.9, 2438, 2372),
        (4500, 0.95, 3581, 3494),
        (200, 0.9, 108, 105),
        (200, 0.95, 159, 155),
    ],
)
def test_what_a_certificate_costs(unjudged, target, draws, fixed):
    """At most 3 % more than a test of fixed size."""
    rounds = [AuditRound(30, unjudged, 0, 0)]
    assert more_without_hit(rounds, found=30, target=target) == draws
    enough = [AuditRound(30, unjudged, draws, 0)]
    assert meets_target(enough, found=30, target=target)
    assert not meets_target([AuditRound(30, unjudged, draws - 1, 0)], found=30, target=target)
    assert recall_at_least(enough, found=30) >= target
    least = int(30 / target) + 1 - 30
    assert (
        hypergeom.cdf(0, unjudged, least, fixed)
        <= 0.05
        < hypergeom.cdf(0, unjudged, least, fixed - 1)
    )
    assert draws <= 1.03 * fixed


def test_the_figures_of_300_draws():
    rounds = [AuditRound(30, 4500, 300, 0)]
    assert relevant_at_most(rounds) == 73
    assert missing_at_most(rounds, found=30) == 43
    assert recall_at_least(rounds, found=30) == 30 / 73
    assert more_without_hit(rounds, found=30) == 2438 - 300


def test_finding_more_than_the_bound_leaves_only_what_can_be_excluded():
    rounds = [AuditRound(30, 4500, 2438, 0)]
    assert missing_at_most(rounds, found=32) == 1
    assert recall_at_least(rounds, found=32) == 32 / 33
    assert missing_at_most(rounds, found=33) == 0
    assert missing_at_most(rounds, found=34) == 4500 - 2438 - 4
    assert not meets_target(rounds, found=34)
    assert relevant_at_most([*rounds, AuditRound(40, 2000, 1000, 0)]) == 40 + 1000


def test_a_fully_judged_pool_is_complete():
    for rounds in (
        [AuditRound(30, 200, 200, 0)],
        [AuditRound(5, 90, 9, 1), AuditRound(30, 0, 0, 0)],
    ):
        assert relevant_at_most(rounds) == 30
        assert missing_at_most(rounds, found=30) == 0
        assert meets_target(rounds, found=30, target=1)
        assert more_without_hit(rounds, found=30, target=1) == 0


def test_a_round_without_draws_bounds_nothing_and_large_counts_are_bounded():
    assert relevant_at_most([AuditRound(7, 500, 0, 0)]) == 507
    assert more_without_hit([AuditRound(1, 10, 0, 0)], found=1, target=1) is None
    assert relevant_at_most([AuditRound(30, 100_000, 5_000, 0)]) == 88
    assert relevant_at_most([AuditRound(30, 100_000, 5_000, 4_000)]) < 100_030


def test_an_unsure_hit_can_be_missing_when_all_is_judged():
    rounds = [AuditRound(30, 200, 200, 1)]
    assert missing_at_most(rounds, found=30) == 1
    assert meets_target(rounds, found=30, target=0.96)
    assert more_without_hit(rounds, found=30, target=0.99) is None


def test_nothing_found_has_no_recall():
    rounds = [AuditRound(0, 500, 100, 0)]
    assert recall_at_least(rounds, found=0) is None
    assert missing_at_most(rounds, found=0) > 0
    assert not meets_target(rounds, found=0, target=0.1)
    needed = more_without_hit(rounds, found=0, target=0.1)
    assert missing_at_most([AuditRound(0, 500, 100 + needed, 0)], found=0) == 0


def test_a_target_is_taken_as_it_is_written():
    """57 / 0.95 is 60, which floats miss."""
    rounds = [AuditRound(57, 3, 0, 0)]
    assert meets_target(rounds, found=57, target=0.95)
    assert not meets_target([AuditRound(57, 4, 0, 0)], found=57, target=0.95)


@pytest.mark.parametrize("fraction", [0.01, 0.2, 0.73, 1])
@pytest.mark.parametrize("hits", [0, 1, 7])
def test_the_bound_of_a_release_equals_its_definition(fraction, hits):
    found = release_missing_at_most(hits, fraction)
    assert binom.cdf(hits, found, fraction) > 0.05
    assert all(binom.cdf(hits, m, fraction) <= 0.05 for m in range(found + 1, found + 50))


def test_a_release_s_recall():
    assert release_missing_at_most(0, 0.01) == 298
    recall = release_recall_at_least(found=3010, found_at_audit=3000, hits=0, fraction=0.01)
    assert recall == 3010 / 3298


def test_a_release_of_which_nothing_can_be_said_has_no_recall():
    say = {"found_at_audit": 0, "hits": 0, "fraction": 0.01}
    assert release_recall_at_least(found=0, **say) is None
    assert release_recall_at_least(found=298, **say) == 1
    assert release_recall_at_least(found=299, **say) is None
    assert release_recall_at_least(found=9, **say, seeds=(0, 40)) is None


def test_seeds_lower_the_fraction_and_share_the_error():
    sensitivity = sensitivity_at_least(36, 40)
    assert isclose(sensitivity, beta.ppf(0.02, 36, 5), rel_tol=1e-12)
    seeded = release_missing_at_most(3, 0.01, seeds=(36, 40))
    assert seeded == release_missing_at_most(3, 0.01 * sensitivity, confidence=0.97)
    assert seeded > release_missing_at_most(3, 0.01)
    assert release_missing_at_most(3, 0.01, seeds=(0, 40)) is None


def test_sensitivity_at_its_ends():
    assert sensitivity_at_least(0, 30) == 0
    assert isclose(sensitivity_at_least(30, 30), 0.02 ** (1 / 30), rel_tol=1e-12)
    for recognized, seeds in ((31, 30), (-1, 30), (0, 0)):
        with pytest.raises(ValueError, match="recognized must be"):
            sensitivity_at_least(recognized, seeds)


def test_impossible_numbers_are_refused():
    rounds = [AuditRound(10, 100, 20, 2)]
    for call, words in (
        (lambda: AuditRound(-1, 9, 0, 0), "found must not be negative: -1"),
        (lambda: AuditRound(1, -9, 0, 0), "unjudged must not be negative: -9"),
        (lambda: AuditRound(1, 9, 10, 0), r"drawn must be at most unjudged \(9\): 10"),
        (lambda: AuditRound(1, 9, 4, 5), r"hits must be at most drawn \(4\): 5"),
        (lambda: relevant_at_most([]), "rounds must not be empty"),
        (
            lambda: relevant_at_most([*rounds, AuditRound(11, 50, 0, 0)]),
            r"found of round 2 .* \(12\): 11",
        ),
        (
            lambda: relevant_at_most([*rounds, AuditRound(12, 81, 0, 0)]),
            r"found and unjudged of round 2 .* \(92\): 93",
        ),
        (lambda: missing_at_most(rounds, found=93), r"found must be at most .* \(92\): 93"),
        (lambda: relevant_at_most(rounds, confidence=95), "confidence must lie between 0 and 1"),
        (lambda: meets_target(rounds, found=12, target=1.1), "target must lie between 0 and 1"),
        (lambda: release_missing_at_most(-1, 0.01), "hits must not be negative: -1"),
        (lambda: release_missing_at_most(0, 1.5), "fraction must lie between 0 and 1: 1.5"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
