"""Who may change and publish a run."""

from __future__ import annotations

from typing import Any

from benchmark.runs.models import Run
from core.access import Role, at_least, is_evaluator


def can_edit(user: Any, run: Run) -> bool:
    """Whether the user may change a run's method card: its owner, while they may submit, and
    admins."""
    return at_least(user, Role.ADMIN) or (is_evaluator(user) and run.owner_id == user.pk)


def can_publish(user: Any, run: Run) -> bool:
    """Whether the user may publish the run now: private, scored, and theirs."""
    return run.ready and not run.published and not run.is_baseline and can_edit(user, run)


def can_unpublish(user: Any, run: Run) -> bool:
    """Whether the user may make the run private again: admins alone."""
    return run.published and not run.is_baseline and at_least(user, Role.ADMIN)


def can_delete(user: Any, run: Run) -> bool:
    """Whether the user may delete the run: a private one that is theirs, or as admin any private
    one.
    """
    return not run.published and not run.is_baseline and can_edit(user, run)
