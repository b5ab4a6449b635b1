"""Registration of this app's job kinds, when the app is ready."""

from __future__ import annotations

from core.jobs.kinds import job_handler
from retrieval.datasets.services import KIND as MARK_KIND
from retrieval.datasets.services import mark_step
from retrieval.embedding.measuring import KIND as MEASURE_KIND
from retrieval.embedding.measuring import measure_step
from retrieval.embedding.services import (
    KIND,
    PARTICIPANT_KIND,
    embedding_participant_step,
    embedding_step,
)
from retrieval.importing.services import IMPORT_KIND, REMOVAL_KIND
from retrieval.ranking.matrices import KIND as PACK_KIND
from retrieval.ranking.matrices import pack_step
from retrieval.removal.services import removal_step
from retrieval.uploads.services import PREVIEW_KIND, import_step, preview_step

job_handler(IMPORT_KIND)(import_step)
job_handler(PREVIEW_KIND)(preview_step)
job_handler(KIND)(embedding_step)
job_handler(PARTICIPANT_KIND)(embedding_participant_step)
job_handler(PACK_KIND)(pack_step)
job_handler(REMOVAL_KIND)(removal_step)
job_handler(MARK_KIND)(mark_step)
job_handler(MEASURE_KIND)(measure_step)
