"""Who may submit runs, and see labels and files of a release."""

from __future__ import annotations

from typing import Any

from benchmark.formats import Access
from benchmark.models import Release, Run
from retrieval.access import Role, at_least, is_evaluator


def labels_visible_to(user: Any, release: Release, split: str) -> bool:
    """Whether the user may see which images of a split's queries are relevant, and the scores of
    single queries.

    Reviewers and admins see all. Researchers see those of the validation split, and of the test
    split where the release makes its labels public. Annotators see none, since they label without
    knowing what others said.
    """
    if not is_evaluator(user):
        return False
    return split == "val" or not release.labels_hidden or at_least(user, Role.REVIEWER)


def file_visible_to(user: Any, release: Release, access: Access | str) -> bool:
    """Whether the user may have a file of a release with that access."""
    if access == Access.OPEN:
        return is_evaluator(user)
    return labels_visible_to(user, release, "test")


def can_edit(user: Any, run: Run) -> bool:
    """Whether the user may change a run's method card: its owner, while they may submit, and
    admins."""
    return at_least(user, Role.ADMIN) or (is_evaluator(user) and run.owner_id == user.pk)


def can_publish(user: Any, run: Run) -> bool:
    """Whether the user may publish the run now: private, scored, and theirs to tell of."""
    return run.ready and not run.published and not run.is_baseline and can_edit(user, run)


def can_unpublish(user: Any, run: Run) -> bool:
    """Whether the user may make the run private again: admins alone."""
    return run.published and not run.is_baseline and at_least(user, Role.ADMIN)


def can_delete(user: Any, run: Run) -> bool:
    """Whether the user may delete the run: a private one that is theirs, or as admin any private
    one.
    """
    return not run.published and not run.is_baseline and can_edit(user, run)
