"""Labeling again: orders, stops and figures, on drawn pools whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras.simulation import measures, readers
from extras.simulation.core import Pool, Simulation, Stop, active_order, parse_stop
from extras.simulation.readers import parse_reader
from labeling.candidates.stopping import stop_state
from labeling.certificates import bounds
from labeling.certificates.bounds import AuditRound
from labeling.learning.ridge import pool_scores

pytestmark = pytest.mark.pure


def pool_of(relevant: Any, *, minimum: int = 0) -> Pool:
    """A pool for orders that look at no vector."""
    flags = np.array(relevant, np.bool_)
    empty = np.zeros((len(flags), 1), np.float16)
    return Pool(np.arange(len(flags)), flags, empty, np.zeros(1, np.float16), minimum)


def scored_pool(images: int, relevant: int, separation: float, seed: int = 0) -> Pool:
    """The relevant images' scores are so many standard deviations above the others'."""
    rng = np.random.default_rng(seed)
    flags = np.arange(images) < relevant
    return pool_of(flags[np.argsort(-rng.normal(size=images) - separation * flags)])


def drawn_pool(seed: int, *, understood: bool, images: int = 2000) -> Pool:
    """Images with a subject, a behavior, both or neither, each a direction of its own. Both make an
    image relevant; the text's vector has both, or the subject alone.
    """
    rng = np.random.default_rng(seed)
    dimension = 64
    subject, behavior = np.linalg.qr(rng.normal(size=(dimension, 2)))[0].T
    has_subject, has_behavior = rng.random(images) < 0.2, rng.random(images) < 0.15
    vectors = rng.normal(size=(images, dimension)) + rng.normal(size=dimension)
    vectors += 5 * (np.outer(has_subject, subject) + np.outer(has_behavior, behavior))
    halves = (vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float16)
    meant = subject + behavior if understood else subject
    text = (meant / np.linalg.norm(meant)).astype(np.float16)
    order = np.lexsort((np.arange(images), -pool_scores(halves, text)))
    return Pool(order + 1, (has_subject & has_behavior)[order], halves[order], text)


@pytest.mark.parametrize(
    ("text", "stop"),
    [
        ("streak:100", Stop("streak", streak=100)),
        ("streak:50:500", Stop("streak", streak=50, minimum=500)),
        ("certificate:0.9", Stop("certificate", streak=30, target=0.9)),
        ("exhausted", Stop("exhausted")),
    ],
)
def test_stops_are_named_as_they_are_written(text, stop):
    assert parse_stop(text, streak=30) == stop
    assert str(stop) == text


def test_what_makes_no_simulation_is_refused():
    for text in ("", "streak:0", "streak:9:-1", "streak:1:2:3", "certificate:90", "exhausted:1"):
        with pytest.raises(ValueError, match="is no stop rule: write streak:100"):
            parse_stop(text)
    with pytest.raises(ValueError, match="No image is relevant"):
        Simulation(pool_of([0, 0, 0]))


# Ten images, of which the first, third and last are relevant.
FOUND_AT = np.array([1, 3, 10])


def test_labels_to_a_recall():
    given = [measures.labels_to(FOUND_AT, recall) for recall in (0.01, 0.33, 0.34, 0.8, 1)]
    assert given == [1, 1, 3, 10, 10]
    assert measures.labels_to(np.arange(1, 21), 0.95) == 19


def test_wss_erf_and_atd_are_those_of_asreview_insights():
    """By hand: an even random order finds round(3 (i - 1) / 9) images in i labels: 0 0 1 1 1 2 2 2
    3 3. At most 95 % are 2 of 3 images: found after 3 labels, at random after 6. A tenth of the
    pool is one label: 1 found, at random none.
    """
    assert measures.work_saved(FOUND_AT, 10) == pytest.approx(0.3)
    assert measures.extra_found(FOUND_AT, 10) == pytest.approx(1 / 3)
    assert measures.time_to_discovery(FOUND_AT) == pytest.approx(14 / 3)
    assert measures.work_saved(np.array([2]), 4) == pytest.approx((3 - 2) / 4)
    assert measures.extra_found(np.array([2]), 4) == 0


def test_the_frozen_orders_figures():
    relevant = np.zeros(100, np.bool_)
    relevant[[0, 4, 9, 19]] = True
    figures = Simulation(pool_of(relevant)).order("frozen")
    assert figures.runs == 1
    assert figures.labels_to == {"80": 20, "95": 20, "100": 20}
    assert figures.atd == (1 + 5 + 10 + 20) / 4
    assert figures.curve[:11] == [0, *[0.25] * 4, *[0.5] * 5, 0.75]


def test_a_random_order_is_as_random_as_it_should_be():
    simulation = Simulation(scored_pool(200, 20, 5), seeds=400)
    figures = simulation.order("random")
    assert figures.runs == 400
    # The expected place of the i-th of R among N is i (N + 1) / (R + 1).
    assert figures.labels_to["95"] == pytest.approx(19 * 201 / 21, rel=0.02)
    assert figures.atd == pytest.approx(201 / 2, rel=0.02)
    assert np.abs(np.array(figures.curve) - np.array(simulation.curve_labels) / 200).max() < 0.02


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 8), st.integers(0, 30))
def test_a_streak_stops_where_the_labeling_pages_rule_does(begin, streak, minimum):
    relevant = [*begin, *[False] * 40, True]
    labels = [(rank, "relevant" if hit else "not_relevant") for rank, hit in enumerate(relevant, 1)]
    stops = (
        count
        for count in range(1, len(labels) + 1)
        if stop_state(
            labels[:count],
            length=len(labels),
            complete=True,
            streak_required=streak,
            minimum=minimum,
        ).met
    )
    wanted = next(stops)
    pool = pool_of(relevant, minimum=minimum)
    figures = Simulation(pool).stop("frozen", parse_stop(f"streak:{streak}"))
    assert figures.labels == wanted
    assert figures.recall == pytest.approx(sum(relevant[:wanted]) / sum(relevant))
    own = Simulation(replace(pool, minimum=0)).stop("frozen", Stop("streak", streak, minimum))
    assert own.labels == wanted


def test_exhausting_labels_everything():
    figures = Simulation(scored_pool(300, 20, 2)).stop("frozen", parse_stop("exhausted"))
    assert (figures.runs, figures.labels, figures.recall, figures.saved) == (1, 300, 1, 0)
    assert (figures.exhausted, figures.below_target.share) == (1, 0)
    assert figures.coverage is None


def one_by_one(pool: Pool, stop: Stop, seed: int) -> tuple[int, int, list[AuditRound]]:
    """A certificate by the rules, looked at after every single label: labels, found, rounds."""
    draws = np.random.default_rng((seed, 2)).permutation(len(pool.relevant))
    judged: set[int] = set()
    found = 0
    rounds: list[AuditRound] = []

    def judge(place: int) -> bool:
        nonlocal found
        judged.add(place)
        found += bool(pool.relevant[place])
        return bool(pool.relevant[place])

    def met() -> bool:
        return bool(rounds) and bounds.meets_target(rounds, found=found, target=stop.target)

    while True:
        row = 0
        for place in range(len(pool.relevant)):
            if place not in judged:
                row = 0 if judge(place) else row + 1
                if row == stop.streak or met():
                    break
        if met() or len(judged) == len(pool.relevant):
            return len(judged), found, rounds
        rounds.append(AuditRound(found, len(pool.relevant) - len(judged), 0, 0))
        for place in (int(place) for place in draws if place not in judged):
            hit = judge(place)
            last = rounds[-1]
            rounds[-1] = replace(last, drawn=last.drawn + 1, hits=last.hits + hit)
            if met():
                return len(judged), found, rounds
            if hit:
                break


@pytest.mark.parametrize("seed", range(6))
def test_a_certificate_is_that_of_somebody_who_looks_after_every_label(seed):
    pool = scored_pool(260, 25, 2, seed=seed)
    stop = Stop("certificate", streak=20, target=0.8)
    run = Simulation(pool, seeds=seed + 1).runs("frozen", stop)[seed]
    labels, found, rounds = one_by_one(pool, stop, seed)
    assert (run.labels, run.found, list(run.rounds)) == (labels, found, rounds)
    assert run.certified == (labels < 260)


def test_certificates_hold():
    """Half the runs end near the target, so that a false one would show."""
    simulation = Simulation(scored_pool(1000, 40, 2), seeds=300)
    figures = simulation.stop("frozen", parse_stop("certificate:0.7"))
    assert figures.runs == 300
    assert figures.coverage is not None
    assert figures.false_certificates is not None
    assert figures.coverage.high >= 0.95
    assert figures.coverage.share >= 0.93
    assert figures.false_certificates.low <= 0.05
    assert figures.exhausted < 0.5
    assert figures.labels < 1000
    streak = simulation.stop("frozen", parse_stop("streak:100"))
    assert streak.recall < figures.recall


def test_somebody_who_misses_images_breaks_a_certificate():
    simulation = Simulation(scored_pool(1000, 40, 3), seeds=100, noise=0.4)
    figures = simulation.stop("frozen", parse_stop("certificate:0.8"))
    assert figures.recall < 0.7
    assert figures.false_certificates is not None
    assert figures.false_certificates.low > 0.05
    everything = simulation.stop("frozen", parse_stop("exhausted"))
    assert everything.runs == 100
    assert everything.recall == pytest.approx(0.6, abs=0.03)


def test_only_what_depends_on_chance_runs_again():
    exact = Simulation(drawn_pool(0, understood=True, images=300), seeds=7, active_seeds=3)
    missing = Simulation(exact.pool, seeds=7, active_seeds=3, noise=0.1)
    streak, certificate = parse_stop("streak:10"), parse_stop("certificate:0.5", streak=10)

    def runs(simulation: Simulation, order: str) -> list[int]:
        found = [simulation.stop(order, stop).runs for stop in (streak, certificate)]
        return [simulation.order(order).runs, *found]

    assert runs(exact, "frozen") == [1, 1, 7]
    assert runs(exact, "active") == [1, 1, 3]
    assert runs(exact, "random") == [7, 7, 7]
    assert runs(missing, "frozen") == [1, 7, 7]
    assert runs(missing, "active") == [3, 3, 3]


def test_the_same_seeds_give_the_same_figures():
    stop = parse_stop("certificate:0.9", streak=20)
    first, again = (
        Simulation(drawn_pool(1, understood=False, images=300), seeds=5).stop("active", stop)
        for _ in range(2)
    )
    assert first == again


def test_the_order_that_learns_begins_with_the_frozen_one_and_learns_after_ten_labels():
    pool = drawn_pool(0, understood=False, images=400)
    following = active_order(pool)
    labels = np.full(400, -1, np.int8)
    assert following(labels).tolist() == list(range(10))
    labels[:10] = 0
    labels[3] = 1
    learned = following(labels)
    assert learned.tolist() != list(range(10, 20))
    # The 12th, 16th and 20th image come from the frozen order.
    assert learned[1] == 10
    assert not set(learned.tolist()) & set(range(10))


@pytest.mark.parametrize(
    ("understood", "most"),
    [pytest.param(False, 0.5, id="half its text missing"), pytest.param(True, 1.1, id="whole")],
)
def test_what_the_model_misses_is_learned_and_the_rest_costs_little(understood, most):
    """Labels to 95 % of the relevant against the frozen order, geometric mean of five corpora."""
    ratios = []
    for seed in range(5):
        simulation = Simulation(drawn_pool(seed, understood=understood), seeds=1)
        frozen, active = (simulation.order(order) for order in ("frozen", "active"))
        ratios.append(active.labels_to["95"] / frozen.labels_to["95"])
    assert np.exp(np.mean(np.log(ratios))) <= most


def test_a_simulated_reader_has_the_auc_and_the_correlation_that_it_is_asked_for():
    pool = drawn_pool(0, understood=False, images=20_000)
    clip = pool_scores(pool.vectors, pool.text)
    for text, correlation in (("auc:0.7", 0), ("auc:0.95", 0), ("auc:0.9:0.5", 0.5)):
        reader = parse_reader(text)
        said = reader.log_odds(pool.relevant, clip, prevalence=pool.relevant.mean(), seed=1)
        # Mann and Whitney's U as a share of the pairs is the AUC.
        ranks = np.empty(len(said))
        ranks[np.argsort(said)] = np.arange(1, len(said) + 1)
        positive = int(pool.relevant.sum())
        pairs = positive * (len(said) - positive)
        auc = (ranks[pool.relevant].sum() - positive * (positive + 1) / 2) / pairs
        assert auc == pytest.approx(reader.auc, abs=0.01)
        others = ~pool.relevant
        assert np.corrcoef(said[others], clip[others])[0, 1] == pytest.approx(correlation, abs=0.03)
        # Calibrated: of all images as many are relevant as its probabilities add up to.
        assert (1 / (1 + np.exp(-said))).sum() == pytest.approx(positive, rel=0.1)
    for wrong in ("0.9", "auc", "auc:1", "auc:0.4", "auc:0.9:2", "auc:0.9:0:0", "auc:x"):
        with pytest.raises(ValueError, match="is no reader: write auc:"):
            parse_reader(wrong)


def test_a_good_reader_brings_the_relevant_first_and_a_useless_one_changes_nothing():
    pool = drawn_pool(0, understood=False, images=800)
    simulation = Simulation(pool, seeds=3)
    relevant, active = int(pool.relevant.sum()), simulation.order("active").labels_to["95"]
    # One image in four comes from the frozen order.
    assert simulation.order("read auc:0.999").labels_to["95"] < 4 / 3 * relevant + 10 < active
    assert simulation.order("read auc:0.5").labels_to["95"] == active
    # What a reader leaves out comes last.
    assert simulation.order("screened auc:0.6").labels_to["100"] <= 800


def test_a_certificate_holds_where_a_reader_leaves_out_relevant_images(monkeypatch):
    """The reader keeps what only half of the relevant images belong to: the audits find out."""
    monkeypatch.setattr(readers, "KEPT", 0.5)
    simulation = Simulation(scored_pool(300, 40, 2), seeds=50, active_seeds=50)
    screened = simulation.stop("screened auc:0.8", parse_stop("streak:300"))
    assert screened.recall_p5 < screened.recall < 0.55
    figures = simulation.stop("screened auc:0.8", parse_stop("certificate:0.6", streak=20))
    assert figures.coverage is not None
    assert figures.false_certificates is not None
    assert figures.recall > 0.7
    assert figures.exhausted < 0.5
    assert figures.coverage.high >= 0.95
    assert figures.false_certificates.low <= 0.05


def test_doubt_finds_errors_sooner_than_chance_where_a_reader_is_good():
    pool = drawn_pool(0, understood=True, images=2000)
    simulation = Simulation(pool, seeds=50, noise=0.2)
    good, poor = (simulation.doubt(f"read auc:{auc}") for auc in ("0.99", "0.7"))
    assert good.second_opinions > 0
    assert good.errors_found > 5 * good.errors_at_random
    # It is confident of no relevant image, and doubts those that people found.
    assert poor.errors_found < poor.errors_at_random
