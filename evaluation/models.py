"""The models of this app, in the folders of their subjects; Django looks for them here."""

from evaluation.reranking.multimodal.models import ModelAnswer
from evaluation.runs.models import Run, RunScores, Submission

__all__ = ["ModelAnswer", "Run", "RunScores", "Submission"]
