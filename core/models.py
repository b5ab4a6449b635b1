"""The models of this app, in the folders of their subjects; Django looks for them here."""

from core.jobs.models import Job, JobItemError

__all__ = ["Job", "JobItemError"]
