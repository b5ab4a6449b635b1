"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from retrieval.jobs import job_handler
from retrieval.services.embedding import KIND, embedding_step

job_handler(KIND)(embedding_step)
