"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from retrieval.jobs import job_handler
from retrieval.services.embedding import (
    KIND,
    SHARE_KIND,
    embedding_share_step,
    embedding_step,
)
from retrieval.services.indexing import KIND as INDEX_KIND
from retrieval.services.indexing import index_step
from retrieval.services.matrices import KIND as PACK_KIND
from retrieval.services.matrices import pack_step

job_handler(KIND)(embedding_step)
job_handler(SHARE_KIND)(embedding_share_step)
job_handler(INDEX_KIND)(index_step)
job_handler(PACK_KIND)(pack_step)
