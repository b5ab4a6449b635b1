"""Encode the texts that other processes ask for."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from retrieval.embedding.text_vectors import serve_texts


class Command(BaseCommand):
    """encode_texts"""

    help = "Encodes the texts that web server and workers ask for, until it is ended."

    def handle(self, *args: Any, **options: Any) -> None:
        """Encode texts; a second such process waits for the end of the first."""
        serve_texts()
