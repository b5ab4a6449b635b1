"""What services refuse, in words for people."""

from __future__ import annotations


class Conflict(Exception):
    """The request is well formed, but not possible in the state in which things are (HTTP 409)."""


class QueryGone(Conflict):
    """The query was deleted while somebody was at it."""
