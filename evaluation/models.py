"""The models of this app, in the folders of their subjects; Django looks for them here."""

from evaluation.reranking.multimodal.models import ModelAnswer
from evaluation.runs.models import Run, RunScores, Submission
from evaluation.species.models import SpeciesRun

__all__ = ["ModelAnswer", "Run", "RunScores", "SpeciesRun", "Submission"]
