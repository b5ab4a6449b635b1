from labeling.models.candidates import Candidate, CandidateList
from labeling.models.judgment import Judgment, JudgmentEvent, JudgmentSource, Relevance
from labeling.models.query import Query, QueryTransition

__all__ = [
    "Candidate",
    "CandidateList",
    "Judgment",
    "JudgmentEvent",
    "JudgmentSource",
    "Query",
    "QueryTransition",
    "Relevance",
]
