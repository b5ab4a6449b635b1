"""What chance draws: by a key, checkable, a release's selection apart from a query's."""

import hashlib

import numpy as np
import pytest

from labeling.audits.draws import KEY_BYTES, draw_number, draw_order, selected
from labeling.blind.opinion_draws import FirstLabel, LabelChoice, OpinionShares, choose_labels

pytestmark = pytest.mark.pure

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))
IMAGES = range(1000, 6000)
SHARES = OpinionShares(positive=0.4, negative=0.1)


def test_the_number_is_the_documented_hash():
    digest = hashlib.blake2b(b"7,12345", key=KEY, digest_size=8).hexdigest()
    assert draw_number(KEY, 7, 12345) == int(digest, 16) == 0xFE7C56CF5D2C11B2


def test_the_order_depends_on_key_and_query_alone():
    order = draw_order(KEY, 7, IMAGES)
    assert sorted(order) == list(IMAGES)
    assert order == draw_order(KEY, 7, reversed(IMAGES))
    assert order != draw_order(KEY, 8, IMAGES)
    assert order != draw_order(OTHER, 7, IMAGES)
    few = set(IMAGES[::7])
    assert draw_order(KEY, 7, few) == [one for one in order if one in few]


def test_equal_numbers_are_ordered_by_id(monkeypatch):
    monkeypatch.setattr("labeling.audits.draws.draw_number", lambda *_: 5)
    assert draw_order(KEY, 7, [9, 3, 6]) == [3, 6, 9]


def test_a_selection_takes_its_fraction_and_grows_with_it():
    taken = {one for one in IMAGES if selected(KEY, 7, one, 0.01)}
    more = {one for one in IMAGES if selected(KEY, 7, one, 0.05)}
    assert taken < more
    assert abs(len(more) - 250) < 5 * (5000 * 0.05 * 0.95) ** 0.5
    assert more == set(draw_order(KEY, 7, IMAGES)[: len(more)])
    assert all(selected(KEY, 7, one, 1) for one in IMAGES[:100])
    assert not any(selected(KEY, 7, one, 0) for one in IMAGES)


def test_under_another_key_the_first_draws_are_not_those_selected():
    first = draw_order(KEY, 7, IMAGES)[:250]
    assert sum(selected(OTHER, 7, one, 0.05) for one in first) < 50


def test_a_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="key must have 32 bytes: 5"):
        draw_number(b"short", 7, 1)


def test_the_hash_and_the_boundary_choose():
    key = bytes(range(KEY_BYTES))
    labels = [FirstLabel(n, n % 2 == 0 and n < 20, 1 - n / 100) for n in range(1, 90)]
    labels.append(FirstLabel(999, True, None))
    found = choose_labels(labels, key=key, query_id=7, shares=SHARES, boundary=4)
    # Nine are relevant, so the ninth of all is the boundary: of those that aren't, itself, and the
    # ones nearest to it, the lower id of two as near.
    near = {one.image_id for one in found if one.boundary}
    assert near == {7, 9, 11, 5}
    for label in labels:
        share = 0.4 if label.relevant else 0.1
        drawn = selected(key, 7, label.image_id, share)
        one = LabelChoice(label.image_id, share if drawn else None, label.image_id in near)
        assert (one in found) == (drawn or label.image_id in near)
    none = [FirstLabel(n, False, 0.5) for n in range(9)]
    relevant = OpinionShares(positive=1, negative=0)
    assert choose_labels(none, key=key, query_id=7, shares=relevant, boundary=4) == []


TOY = [FirstLabel(n, n % 4 == 0, None) for n in range(1, 41)]


def drawn_of(labels: list[FirstLabel], number: int, **limits: float) -> dict[int, float]:
    """The probabilities of what the hash draws under the key of this number."""
    key = number.to_bytes(KEY_BYTES)
    found = choose_labels(labels, key=key, query_id=7, shares=SHARES, boundary=0, **limits)  # type: ignore[arg-type]
    return {one.image_id: one.probability for one in found if one.probability is not None}


@pytest.mark.parametrize(
    ("least", "most"), [(0, 5), (10, 12), (40, 40), (3, 3)], ids=["fewer", "more", "all", "fixed"]
)
def test_under_a_floor_and_a_ceiling_the_weights_count_every_label_once(least, most):
    sums = []
    for number in range(3000):
        drawn = drawn_of(TOY, number, least=least, most=most)
        assert least <= len(drawn) <= most
        sums.append([
            sum(1 / drawn[one.image_id] for one in TOY if one.image_id in drawn and one.relevant),
            sum(1 / p for p in drawn.values()),
        ])  # fmt: skip
    # In expectation as many as there are: 10 relevant of 40.
    error = np.std(sums, axis=0) / len(sums) ** 0.5
    assert (np.abs(np.mean(sums, axis=0) - [10, 40]) <= 4 * error + 1e-9).all()


def test_a_later_draw_under_the_earlier_threshold_still_counts_every_label_once():
    sums = []
    for number in range(3000):
        first = drawn_of(TOY[:20], number, most=3)
        threshold = min([1.0, *(p / SHARES.of(relevant=n % 4 == 0, lookalike=False)
                                for n, p in first.items())])  # fmt: skip
        rest = [one for one in TOY if one.image_id not in first]
        later = drawn_of(rest, number, most=6 - len(first), threshold=threshold * (1 - 1e-12))
        assert all(n > 20 for n in later), "what was passed over is not drawn later"
        sums.append(sum(1 / p for p in [*first.values(), *later.values()]))
    assert abs(np.mean(sums) - 40) <= 4 * np.std(sums) / len(sums) ** 0.5


def test_a_floor_above_the_number_of_labels_draws_all():
    drawn = drawn_of(TOY[:3], 1, least=10, most=10)
    assert drawn == dict.fromkeys((label.image_id for label in TOY[:3]), 1.0)


def test_the_boundary_fills_what_the_ceiling_leaves():
    labels = [FirstLabel(n, n < 20, 1 - n / 100) for n in range(1, 90)]
    for number in range(50):
        key = number.to_bytes(KEY_BYTES)
        found = choose_labels(
            labels, key=key, query_id=7, shares=SHARES, boundary=50, least=10, most=13
        )
        drawn = sum(one.probability is not None for one in found)
        assert len(found) == 13
        assert sum(one.boundary for one in found if one.probability is None) == 13 - drawn
