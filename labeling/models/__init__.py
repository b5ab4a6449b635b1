from labeling.models.assignment import Assignment
from labeling.models.candidates import Candidate, CandidateList
from labeling.models.example import QueryExample
from labeling.models.judgment import Judgment, JudgmentEvent, JudgmentSource, Relevance
from labeling.models.preferences import LabellingPreferences
from labeling.models.query import Query, QueryTransition

__all__ = [
    "Assignment",
    "Candidate",
    "CandidateList",
    "Judgment",
    "JudgmentEvent",
    "JudgmentSource",
    "LabellingPreferences",
    "Query",
    "QueryExample",
    "QueryTransition",
    "Relevance",
]
