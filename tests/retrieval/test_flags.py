"""Flags and withdrawals: counted once, decided once, also at once."""

from __future__ import annotations

from typing import Any

import pytest

from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.models import EmbeddingModel
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import (
    flag_reviews,
    flagged_image_count,
    flagged_images,
    withdrawn_images,
)
from retrieval.flags.services import (
    FlagRefused,
    image_flag_raise,
    image_flag_retract,
    image_flags_clear,
    image_flags_reopen,
    image_restore,
    image_withdraw,
)
from tests.retrieval.making import image_row
from tests.threads import at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def image(db: None) -> Image:
    return image_row(7)


def states(image: Image) -> list[tuple[str, str, str | None]]:
    """(kind, state, who decided) of an image's flags, in the order in which they were raised."""
    rows = ImageFlag.objects.filter(image=image).order_by("pk")
    return list(rows.values_list("kind", "state", "decided_by__username"))


def test_a_flag_is_raised_once_while_it_is_open(
    image: Image, annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    flag, new = image_flag_raise(image=image, kind="person", note="a child", by=annotator)
    assert new
    assert image_flag_raise(image=image, kind="person", by=annotator) == (flag, False)
    flag.refresh_from_db()
    assert flag.note == "a child"
    image_flag_raise(image=image, kind="person", note="two children", by=annotator)
    flag.refresh_from_db()
    assert flag.note == "two children"
    assert image_flag_raise(image=image, kind="person", by=other_annotator)[1]
    assert image_flag_raise(image=image, kind="duplicate", by=annotator)[1]
    assert ImageFlag.objects.count() == 3
    image_flags_clear(image=image, by=reviewer)
    assert image_flag_raise(image=image, kind="person", by=annotator)[1]
    assert ImageFlag.objects.count() == 4


def test_one_takes_back_ones_own_open_flag_only(
    image: Image, annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    flag = image_flag_raise(image=image, kind="person", by=annotator)[0]
    kept = image_flag_raise(image=image, kind="duplicate", by=annotator)[0]
    with pytest.raises(FlagRefused, match="Only the person who raised a flag"):
        image_flag_retract(flag=flag, by=other_annotator)
    assert image_flag_retract(flag=flag, by=annotator)
    assert not image_flag_retract(flag=flag, by=annotator)
    image_flags_clear(image=image, by=reviewer)
    with pytest.raises(FlagRefused, match="has already decided on this flag"):
        image_flag_retract(flag=kept, by=annotator)
    assert states(image) == [("duplicate", "cleared", "rita")]


def test_withdrawing_upholds_the_open_flags_and_counts_once(
    image: Image, annotator: Any, reviewer: Any, admin: Any
) -> None:
    image_flag_raise(image=image, kind="poor_quality", by=annotator)
    image_flags_clear(image=image, by=admin)
    image_flag_raise(image=image, kind="person", by=annotator)
    image_flag_raise(image=image, kind="person", by=reviewer)
    first = image_withdraw(image=image, by=reviewer, note="a face")
    again = image_withdraw(image=image, by=admin, note="another reason")
    assert again == first
    assert (again.note, again.withdrawn_by) == ("a face", reviewer)
    assert states(image) == [
        ("poor_quality", "cleared", "ada"),
        ("person", "upheld", "rita"),
        ("person", "upheld", "rita"),
    ]
    with pytest.raises(FlagRefused, match="has already been withdrawn"):
        image_flag_raise(image=image, kind="duplicate", by=annotator)
    assert image_flags_clear(image=image, by=admin) == []


def test_restoring_ends_the_withdrawal_and_its_flags_stay_decided(
    image: Image, annotator: Any, reviewer: Any, admin: Any
) -> None:
    image_flag_raise(image=image, kind="person", by=annotator)
    withdrawal = image_withdraw(image=image, by=reviewer)
    assert image_restore(image=image, by=admin)
    assert not image_restore(image=image, by=reviewer)
    withdrawal.refresh_from_db()
    assert withdrawal.restored_by == admin
    assert withdrawal.restored_at >= withdrawal.withdrawn_at
    assert states(image) == [("person", "upheld", "rita")]
    image_withdraw(image=image, by=reviewer)
    assert ImageWithdrawal.objects.filter(image=image).count() == 2
    assert ImageWithdrawal.objects.filter(image=image, restored_at=None).count() == 1


def test_an_undone_withdrawal_opens_the_flags_that_it_upheld_and_no_others(
    image: Image, annotator: Any, reviewer: Any
) -> None:
    image_flag_raise(image=image, kind="duplicate", by=annotator)
    image_withdraw(image=image, by=reviewer)
    image_restore(image=image, by=reviewer)
    image_flag_raise(image=image, kind="person", note="a face", by=annotator)
    image_withdraw(image=image, by=reviewer)
    assert image_restore(image=image, by=reviewer, reopen=True)
    assert states(image) == [("duplicate", "upheld", "rita"), ("person", "open", None)]


def test_only_the_flags_that_were_seen_are_cleared(
    image: Image, annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    seen = image_flag_raise(image=image, kind="person", by=annotator)[0]
    unseen = image_flag_raise(image=image, kind="personal_data", by=other_annotator)[0]
    assert image_flags_clear(image=image, by=reviewer, flags=[seen.pk]) == [seen.pk]
    assert states(image) == [("person", "cleared", "rita"), ("personal_data", "open", None)]
    assert image_flags_clear(image=image, by=reviewer, flags=[seen.pk]) == []
    assert image_flags_clear(image=image, by=reviewer) == [unseen.pk]


def test_a_clearing_is_undone_without_doubling_a_flag_raised_since(
    image: Image, annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    image_flag_raise(image=image, kind="person", by=annotator)
    image_flag_raise(image=image, kind="person", by=other_annotator)
    cleared = image_flags_clear(image=image, by=reviewer)
    image_flag_raise(image=image, kind="person", by=annotator)
    assert image_flags_reopen(image=image, flags=cleared) == 1
    assert [state for _, state, _ in states(image)] == ["cleared", "open", "open"]
    image_withdraw(image=image, by=reviewer)
    with pytest.raises(FlagRefused, match="has been withdrawn from the corpus"):
        image_flags_reopen(image=image, flags=cleared)


def test_reviewers_see_flagged_and_withdrawn_images_the_newest_first(
    annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    images = {number: image_row(number) for number in (1, 2, 3, 4)}
    for number, kind in [(1, "person"), (2, "duplicate"), (3, "no_organism"), (1, "poor_quality")]:
        image_flag_raise(image=images[number], kind=kind, by=annotator)
    image_flag_raise(image=images[2], kind="duplicate", by=other_annotator)
    assert [image.pk for image in flagged_images()] == [2, 1, 3]
    assert flagged_image_count() == 3
    image_flags_clear(image=images[3], by=reviewer)
    image_withdraw(image=images[1], by=reviewer, note="a face")
    image_withdraw(image=images[4], by=reviewer)
    assert [image.pk for image in flagged_images()] == [2]
    assert [image.pk for image in withdrawn_images()] == [4, 1]
    reviews = flag_reviews([*flagged_images(), *withdrawn_images()])
    assert [
        (review.image.pk, [flag.kind for flag in review.flags], review.withdrawal is not None)
        for review in reviews
    ] == [
        (2, ["duplicate", "duplicate"], False),
        (4, [], True),
        (1, ["person", "poor_quality"], True),
    ]
    image_restore(image=images[1], by=reviewer)
    assert [image.pk for image in withdrawn_images()] == [4]
    assert flagged_image_count() == 1


def test_an_image_that_was_deleted_is_not_decided_about(
    image: Image, annotator: Any, reviewer: Any
) -> None:
    Image.objects.filter(pk=image.pk).delete()
    for act in (
        lambda: image_flag_raise(image=image, kind="person", by=annotator),
        lambda: image_withdraw(image=image, by=reviewer),
        lambda: image_restore(image=image, by=reviewer),
        lambda: image_flags_clear(image=image, by=reviewer),
    ):
        with pytest.raises(Image.DoesNotExist):
            act()


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_the_same_flag_sent_eight_times_at_once_is_one(
        self, transactional_db: None, annotator: Any
    ) -> None:
        image = image_row(7)
        results = at_once(
            *[lambda: image_flag_raise(image=image, kind="person", by=annotator)[1]] * 8
        )
        assert sorted(results) == [False] * 7 + [True]
        assert ImageFlag.objects.count() == 1

    def test_eight_withdrawals_at_once_are_one(
        self, transactional_db: None, annotator: Any, reviewer: Any
    ) -> None:
        image = image_row(7)
        image_flag_raise(image=image, kind="person", by=annotator)
        results = at_once(*[lambda: image_withdraw(image=image, by=reviewer).pk] * 8)
        [standing] = ImageWithdrawal.objects.all()
        assert results == [standing.pk] * 8
        assert states(image) == [("person", "upheld", "rita")]

    def test_an_image_withdrawn_and_cleared_at_once_is_withdrawn_and_its_flags_decided_once(
        self, transactional_db: None, annotator: Any, reviewer: Any, admin: Any
    ) -> None:
        for number in range(6):
            image = image_row(number)
            image_flag_raise(image=image, kind="person", by=annotator)
            image_flag_raise(image=image, kind="duplicate", by=annotator)
            at_once(
                lambda image=image: image_withdraw(image=image, by=reviewer),
                lambda image=image: image_flags_clear(image=image, by=admin),
            )
            assert ImageWithdrawal.objects.filter(image=image, restored_at=None).count() == 1
            decided = {(state, who) for _, state, who in states(image)}
            assert decided in ({("upheld", "rita")}, {("cleared", "ada")})

    def test_a_flag_is_before_a_withdrawal_or_refused_by_it(
        self, transactional_db: None, annotator: Any, other_annotator: Any, reviewer: Any
    ) -> None:
        for number in range(6):
            image = image_row(number)
            *raised, _ = at_once(
                lambda image=image: image_flag_raise(image=image, kind="person", by=annotator),
                lambda image=image: image_flag_raise(
                    image=image, kind="person", by=other_annotator
                ),
                lambda image=image: image_withdraw(image=image, by=reviewer),
            )
            before = [one for one in raised if not isinstance(one, FlagRefused)]
            assert all(new for _, new in before)
            assert states(image) == [("person", "upheld", "rita")] * len(before)

    def test_withdrawing_and_restoring_at_once_leaves_whole_intervals(
        self, transactional_db: None, reviewer: Any, toy_model: EmbeddingModel
    ) -> None:
        image = image_row(7)
        at_once(
            *[
                lambda: image_withdraw(image=image, by=reviewer),
                lambda: image_restore(image=image, by=reviewer),
            ]
            * 4
        )
        image_restore(image=image, by=reviewer)
        intervals = list(
            ImageWithdrawal.objects.order_by("pk").values_list("withdrawn_at", "restored_at")
        )
        assert 1 <= len(intervals) <= 4
        moments = [moment for interval in intervals for moment in interval]
        assert moments == sorted(moments)
