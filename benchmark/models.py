"""The models of this app, in the folders of their subjects; Django looks for them here."""

from benchmark.releases.models import Release
from benchmark.reranking.multimodal.models import ModelAnswer
from benchmark.runs.models import Run, RunScores, Submission
from benchmark.species.models import SpeciesRun

__all__ = ["ModelAnswer", "Release", "Run", "RunScores", "SpeciesRun", "Submission"]
