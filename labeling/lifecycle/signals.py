"""Signals about queries, for extras."""

from __future__ import annotations

from django.dispatch import Signal

query_submitted = Signal()
"""Sent with a `query` in the transaction that submits it, under its lock, once its second opinions
are drawn; not where it is given up."""
