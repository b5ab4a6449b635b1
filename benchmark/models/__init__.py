from benchmark.models.answer import ModelAnswer
from benchmark.models.release import Release
from benchmark.models.run import Run, RunScores, Submission

__all__ = ["ModelAnswer", "Release", "Run", "RunScores", "Submission"]
