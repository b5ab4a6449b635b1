"""What of labeling names images."""

from __future__ import annotations

from typing import Final

from core.registries import ImageUse
from labeling.audits.models import Draw
from labeling.blind.models import MarkedCheck
from labeling.candidates.models import Candidate
from labeling.comments.models import Thread
from labeling.judging.models import BlindItem, JudgmentEvent
from labeling.queries.models import QueryExample
from retrieval.removal.selectors import rows_name

#: Of every judgment there is an event, and each image of a pool's rankings is a candidate.
USES: Final = [
    ImageUse("judgments", rows_name(JudgmentEvent)),
    ImageUse("candidate lists", rows_name(Candidate)),
    ImageUse("pinned examples", rows_name(QueryExample)),
    ImageUse("comments", rows_name(Thread)),
    ImageUse("audits", rows_name(Draw)),
    ImageUse("images to judge blindly", rows_name(BlindItem)),
    ImageUse("checks", rows_name(MarkedCheck)),
]
