"""Who may see labels and files of a release."""

from __future__ import annotations

from typing import Any

from core.access import Role, at_least, is_evaluator
from releases.formats.base import Access
from releases.models import Release


def labels_visible_to(user: Any, release: Release, split: str) -> bool:
    """Whether the user may see which images of a split's queries are relevant, and the scores of
    single queries.

    Reviewers and admins see all. Researchers see those of the validation split, and of the test
    split where the release makes its labels public. Annotators see none, since they label without
    knowing others' judgments.
    """
    if not is_evaluator(user):
        return False
    return split == "val" or not release.labels_hidden or at_least(user, Role.REVIEWER)


def other_versions(user: Any, release: Release, split: str) -> list[Release]:
    """The other made versions of a release's benchmark whose labels of a split the user may see,
    newest first: the difference of two versions shows which labels changed."""
    versions = Release.objects.made().filter(name=release.name).exclude(pk=release.pk)
    return [
        version
        for version in versions.order_by("-version")
        if labels_visible_to(user, version, split)
    ]


def file_visible_to(user: Any, release: Release, access: Access | str) -> bool:
    """Whether the user may have a file of a release with that access."""
    if access == Access.OPEN:
        return is_evaluator(user)
    return labels_visible_to(user, release, "test")
