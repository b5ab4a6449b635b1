"""Signals about releases, for other apps."""

from __future__ import annotations

from django.dispatch import Signal

versions_compared = Signal()
"""Sent with a `release` that is being made and has a version before, and its `snapshot`; receivers
return tables of `difference.Difference.runs`."""
release_made = Signal()
"""Sent with a `release` in the transaction that makes it."""
