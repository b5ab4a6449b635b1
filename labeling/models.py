"""The models of this app, in the folders of their subjects; Django looks for them here."""

from labeling.audits.models import (
    Draw,
    DrawKey,
    DrawRound,
    ReleaseAudit,
    ReleaseKey,
)
from labeling.blind.models import MarkedCheck, OpinionKey
from labeling.candidates.models import Candidate, CandidateList, PoolRanking
from labeling.comments.models import Comment, Mention, Thread
from labeling.guidance.models import HowToLabel, Introduction
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent
from labeling.learning.models import Revision
from labeling.queries.models import Assignment, Query, QueryEdit, QueryExample, QueryTransition
from labeling.studio.models import LabelingPreferences

__all__ = [
    "Assignment",
    "BlindItem",
    "Candidate",
    "CandidateList",
    "Comment",
    "Draw",
    "DrawKey",
    "DrawRound",
    "HowToLabel",
    "Introduction",
    "Judgment",
    "JudgmentEvent",
    "LabelingPreferences",
    "MarkedCheck",
    "Mention",
    "OpinionKey",
    "PoolRanking",
    "Query",
    "QueryEdit",
    "QueryExample",
    "QueryTransition",
    "ReleaseAudit",
    "ReleaseKey",
    "Revision",
    "Thread",
]
