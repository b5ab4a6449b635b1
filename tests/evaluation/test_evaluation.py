"""Which queries count in an evaluation, and with what."""

import numpy as np
import pytest

from evaluation.scoring.evaluation import (
    best_rerank,
    evaluate,
    random_scores,
    rerank_qrels,
    rerankable_queries,
    score_run,
    score_runs,
    scored_query_ids,
    sorted_ranking,
)
from evaluation.scoring.measures import DEFAULT_MEASURES, Measure, parse_measures
from evaluation.scoring.metrics import average_precision_at_k
from evaluation.scoring.run_files import Ranking
from releases.snapshot.qrels import Qrels

pytestmark = pytest.mark.pure

AP5 = parse_measures(["AP@5"])


def ranking(*ids: int) -> Ranking:
    """These images, best first."""
    return Ranking(np.array(ids, dtype=np.int64), -np.arange(len(ids), dtype=np.float64))


def qrels(relevant: dict[int, set[int]], judged: dict[int, set[int]] | None = None) -> Qrels:
    """The relevant images of each query, and others that are judged not relevant."""
    pairs = [(query, image, True) for query, images in relevant.items() for image in images]
    pairs += [(query, image, False) for query, images in (judged or {}).items() for image in images]
    return Qrels.from_pairs(relevant, pairs)


def test_the_papers_example_through_the_whole_evaluation():
    run = {1: ranking(1, 7, 8, 9, 2), 2: ranking(1, 6, 7, 8, 9)}
    measures = parse_measures(["AP@5", "P@5", "R@5", "RR@5"])
    result = evaluate(run, qrels({1: {1, 2}, 2: {1, 2}}), measures)
    assert result.scores["AP@5"].tolist() == [0.7, 0.5]
    means = [result.mean(measure) for measure in measures]
    assert means == pytest.approx([0.6, 0.3, 0.75, 1.0])
    assert (result.positives, result.retrieved) == ([2, 2], [5, 5])


def test_a_query_that_the_run_misses_scores_0_and_counts():
    result = evaluate({1: ranking(5), 3: ranking()}, qrels({1: {5}, 2: {6}, 3: {7}}), AP5)
    assert result.missed == [2, 3]
    assert result.scores["AP@5"].tolist() == [1, 0, 0]
    assert result.retrieved == [1, 0, 0]
    assert result.mean(AP5[0]) == pytest.approx(1 / 3)


def test_queries_without_positives_and_unknown_ones_are_left_out_and_named():
    truth = qrels({1: {5}, 2: set(), 3: set()}, {3: {5}})
    result = evaluate({1: ranking(5), 2: ranking(5)}, truth, AP5)
    assert result.without_positives == [2, 3]
    assert result.query_ids == scored_query_ids(truth).tolist() == [1]
    assert result.mean(AP5[0]) == 1.0
    run = {9: ranking(5), 1: ranking(5), 4: ranking(5)}
    result = evaluate(run, qrels({1: {5}}), AP5, known={1, 4})
    assert (result.unknown, result.query_ids) == ([9], [1])
    nothing = evaluate({1: ranking(5)}, qrels({1: set()}), AP5)
    assert (nothing.query_ids, nothing.mean(AP5[0])) == ([], None)
    many = evaluate({}, qrels({30: {1}, 4: {1}, 100: {1}}), AP5)
    assert many.query_ids == many.missed == [4, 30, 100]


def test_ranks_follow_from_scores_and_ids_whatever_the_order_of_the_arrays():
    ids, scores = np.array([7, 3, 9, 5]), np.array([0.5, 0.5, 0.9, 0.1])
    mixed = Ranking(ids, scores)
    assert sorted_ranking(mixed).image_ids.tolist() == [9, 3, 7, 5]
    assert sorted_ranking(mixed).scores.tolist() == [0.9, 0.5, 0.5, 0.1]
    truth = qrels({1: {3}, 2: {3}})
    right = {1: ranking(3, 4), 2: sorted_ranking(mixed)}
    wrong = {1: ranking(3, 4), 2: mixed}
    measures = parse_measures(["RR@1", "RR@2"])
    scored = score_runs([right, wrong], truth, measures)
    assert scored["RR@2"].tolist() == [[1, 0.5], [1, 0.5]]
    assert scored["RR@1"].tolist() == [[1, 0], [1, 0]]


def test_ids_that_share_their_last_bits_are_distinguished():
    near = [5, 5 + (1 << 16), 5 + (1 << 40), -5]
    truth = qrels({1: {5 + (1 << 16), -5}}, {1: {5 + (1 << 40)}})
    scored = score_run(
        {1: ranking(*near)}, truth, parse_measures(["P@1", "P@2", "P@4", "Judged@4"])
    )
    assert [float(values[0]) for values in scored.values()] == [0.0, 0.5, 0.5, 0.75]


def random_runs(seed: int, queries: int = 7, runs: int = 4) -> tuple[list, Qrels]:
    """Runs of different depths that miss some queries, and judgments of some of their images."""
    random = np.random.default_rng(seed)
    pairs = [
        (query, int(image), bool(random.random() < 0.4))
        for query in range(queries)
        for image in random.choice(200, 60, replace=False)
    ]
    made = []
    for _run in range(runs):
        made.append(
            {
                query: ranking(*random.permutation(200)[: random.integers(0, 150)].tolist())
                for query in range(queries)
                if random.random() < 0.8
            }
        )
    return made, Qrels.from_pairs(range(queries), pairs)


def test_many_runs_at_once_give_what_each_gives_alone():
    runs, truth = random_runs(3)
    together = score_runs(runs, truth, DEFAULT_MEASURES)
    assert list(together) == [measure.key for measure in DEFAULT_MEASURES]
    for row, run in enumerate(runs):
        for measure in DEFAULT_MEASURES:
            alone = score_run(run, truth, [measure])[measure.key]
            assert together[measure.key][row].tolist() == alone.tolist()


def test_scores_are_the_measures_of_each_querys_hits():
    runs, truth = random_runs(4)
    scored = score_runs(runs, truth, parse_measures(["AP@50", "AP@R", "Judged@20"]))
    for column, query in enumerate(scored_query_ids(truth).tolist()):
        images, relevant = truth.of(query)
        total = int(relevant.sum())
        for row, run in enumerate(runs):
            ids = run[query].image_ids if query in run else np.zeros(0, dtype=np.int64)
            hits = np.isin(ids, images[relevant])
            expected = average_precision_at_k(hits, total, [50, total])
            assert scored["AP@50"][row, column] == expected[0]
            assert scored["AP@R"][row, column] == expected[1]
            assert scored["Judged@20"][row, column] == np.isin(ids[:20], images).sum() / 20


def test_an_image_twice_is_found_out_where_it_gives_too_many_hits():
    with pytest.raises(ValueError, match="2 hits, but only 1"):
        score_run({1: ranking(5, 5)}, qrels({1: {5}}), AP5)


def test_the_expectation_of_chance_is_the_mean_of_many_random_orders():
    truth = qrels({1: {1, 2}, 2: {3}, 3: set()}, {1: {5}})
    random = np.random.default_rng(5)
    orders = [random.permutation(8) for _ in range(4000)]
    runs = [{1: ranking(*order), 2: ranking(*order)} for order in (one.tolist() for one in orders)]
    measures = [Measure(one.name, one.k and 3) for one in DEFAULT_MEASURES if one.name != "ERR"]
    expected = random_scores(truth, 8, [*measures, Measure("ERR", 3)])
    assert list(expected) == list(dict.fromkeys(measure.key for measure in measures))
    for key, values in score_runs(runs, truth, measures).items():
        assert expected[key].shape == (2,)
        assert expected[key] == pytest.approx(values.mean(axis=0), abs=0.025)
    each = random_scores(truth, [8, 16], measures)
    assert each["Rprec"].tolist() == [0.25, 0.0625]
    assert each["Judged@3"].tolist() == [3 / 8, 1 / 16]


def test_the_best_rerank_moves_only_what_stands_within_its_depth():
    run = {1: ranking(9, 2, 8, 1, 7, 3), 2: ranking(4), 5: ranking(1)}
    truth = qrels({1: {1, 2, 3}, 2: {6}})
    best = best_rerank(run, truth, 4)
    assert best[1].image_ids.tolist() == [2, 1, 9, 8, 7, 3]
    assert (np.diff(best[1].scores) < 0).all()
    assert sorted_ranking(best[1]) is best[1]
    assert best[2].image_ids.tolist() == [4]
    assert set(best) == {1, 2}
    assert best_rerank(run, truth, 100)[1].image_ids.tolist() == [2, 1, 3, 9, 8, 7]


FIXED = {query: np.arange(1, 11) for query in (1, 2, 3, 4, 9)}


def test_queries_with_one_relevant_to_half_relevant_images_are_fit_for_reranking():
    truth = qrels(
        {1: {50}, 2: {1, 50}, 3: {1, 2, 3, 4, 5}, 4: {1, 2, 3, 4, 5, 6}, 8: {1}}, {1: {2}}
    )
    assert rerankable_queries(FIXED, truth) == [2, 3]


def test_the_reranking_task_knows_the_fixed_images_alone():
    truth = qrels({1: {50}, 2: {1, 50}, 3: {1, 2, 10}, 8: {1}}, {2: {7}})
    within = rerank_qrels(truth, FIXED)
    assert within.query_ids.tolist() == [2, 3]
    assert within.sizes().tolist() == [10, 10]
    assert within.totals().tolist() == [1, 3]
    assert within.of(3)[0][within.of(3)[1]].tolist() == [1, 2, 10]
    scored = score_run({2: ranking(1), 3: ranking(3)}, within, parse_measures(["R@5", "Judged@1"]))
    assert scored["R@5"].tolist() == [1, 0]
    assert scored["Judged@1"].tolist() == [1, 1]
    assert len(rerank_qrels(truth, {}).query_ids) == 0
