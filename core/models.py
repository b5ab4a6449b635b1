"""The models of this app, defined in subfolders; Django imports them from here."""

from core.jobs.models import Job, JobItemError

__all__ = ["Job", "JobItemError"]
