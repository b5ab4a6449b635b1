"""The index of a COCO file against plain dictionaries."""

import random
from collections import Counter, defaultdict

import pytest

from retrieval.importing.coco_index import (
    NO_CATEGORY,
    NO_KEY,
    NOT_ANNOTATED,
    SEVERAL,
    CocoIndex,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(("seed", "ascending"), [(0, True), (1, False), (2, False)])
def test_it_knows_what_a_dictionary_would(seed, ascending):
    drawn = random.Random(seed)
    keys = [drawn.choice([NO_KEY, -drawn.randint(2, 90), drawn.randint(0, 10**12), n])
            for n in range(3000)]  # fmt: skip
    annotated = [drawn.choice(keys) for _ in range(3000)] + [-7777, 10**13, 2**63 - 1]
    annotated = [key for key in annotated if key != NO_KEY]
    if ascending:
        keys, annotated = sorted(keys), sorted(annotated)
    numbers = [drawn.choice([0, 1, 2, NO_CATEGORY]) for _ in annotated]
    index = CocoIndex()
    for key in keys:
        index.image_add(key)
    for own_id, (key, number) in enumerate(zip(annotated, numbers, strict=True)):
        index.annotation_add(key, number, own_id)
    index.close()
    plain = defaultdict(list)
    for own_id, (key, number) in enumerate(zip(annotated, numbers, strict=True)):
        plain[key].append((number, own_id))
    assert index.count == 3000
    assert index.repeated() == {k for k, n in Counter(keys).items() if n > 1 and k != NO_KEY}
    assert index.highest(10**11) == max([k for k in keys if k <= 10**11], default=-1)
    assert index.highest(-1) == -1
    strangers = [(key, own) for key in plain if key not in set(keys) for _, own in plain[key]]
    assert sorted(index.without_image()) == sorted(strangers)
    wanted = []
    for key in keys:
        found = plain[key]
        wanted.append(NOT_ANNOTATED if not found else SEVERAL if len(found) > 1 else found[0][0])
        assert index.annotations_of(key) == found
    assert index.categories(0, 1000) + index.categories(1000, 3000) == wanted


def test_an_index_may_lack_images_or_annotations():
    without_images = CocoIndex()
    without_images.annotation_add(5, 0, 1)
    without_images.annotation_add(6, 0, -1)
    without_images.close()
    assert list(without_images.without_image()) == [(5, 1), (6, -1)]
    assert (without_images.count, without_images.highest(10)) == (0, -1)
    without_annotations = CocoIndex()
    without_annotations.image_add(5)
    without_annotations.image_add(6)
    without_annotations.close()
    assert without_annotations.categories(0, 2) == [NOT_ANNOTATED] * 2
    assert without_annotations.annotations_of(5) == list(without_annotations.without_image()) == []
