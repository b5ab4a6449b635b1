"""The demo model's score: candidates, ties and chance."""

import numpy as np
import pytest

from demo.corpus import write_corpus
from demo.queries import QUERIES, read_scenes
from demo.training.score import average_precision, main
from evaluation.scoring.expectations import random_average_precision_at_k

IDS = np.array([10, 11, 12, 13, 14], dtype=np.int64)


def test_ties_go_to_the_smaller_id():
    similarities = np.array([0.1, 0.5, 0.5, 0.5, 0.0])
    assert average_precision(similarities, IDS, {12}, set(IDS), 5)[0] == 0.5
    assert average_precision(similarities[::-1], IDS[::-1], {12}, set(IDS), 5)[0] == 0.5


def test_chance_is_the_exact_expectation():
    model, chance = average_precision(np.arange(5.0), IDS, {10}, set(IDS), 5)
    # One relevant image at each of five ranks alike.
    assert chance == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5)
    assert model == 0.2


def test_candidates_leave_the_others_out():
    model, chance = average_precision(np.arange(5.0), IDS, {10, 14}, {10, 11}, 5)
    assert (model, chance) == (0.5, pytest.approx(0.75))


def test_the_script_prints_the_model_and_chance(tiny_model, tmp_path, capsys):
    corpus = write_corpus(tmp_path / "corpus", count=80, processes=1)
    scenes = read_scenes(corpus)
    answered = [query for query in QUERIES if any(map(query.matches, scenes.values()))]
    assert 0 < len(answered) < len(QUERIES)
    main(["--model", tiny_model, "--corpus", str(corpus)])
    lines = capsys.readouterr().out.splitlines()
    left_out = [line for line in lines if line.startswith("  left out, no image answers it: ")]
    assert len(left_out) == len(QUERIES) - len(answered)
    assert lines[-3] == (
        f"mAP@50 on {len(answered)} queries, 80 images: whole corpus, within species filters"
    )
    sizes = {query: sum(query.matches(scene) for scene in scenes.values()) for query in answered}
    chance = sum(float(random_average_precision_at_k(size, 80, 50)) for size in sizes.values())
    assert lines[-1].split()[:3] == ["random", "order", f"{chance / len(answered):.4f}"]
    for query, size in sizes.items():
        assert any(line.split()[2:] == [str(size), *query.query_text.split()] for line in lines)


def test_the_script_names_a_model_that_cannot_be_loaded(tmp_path):
    with pytest.raises(SystemExit, match="there is no directory"):
        main(["--model", str(tmp_path / "gone")])
