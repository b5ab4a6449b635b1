"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations
