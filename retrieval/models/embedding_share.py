from __future__ import annotations

from django.db import models

from retrieval.models.job import Job


class EmbeddingShare(models.Model):
    """Images of an embedding job, by the range of their ids, that one worker has at a time.

    Whoever works on it holds a session advisory lock of its number, which ends with the worker. A
    share whose lock is free was left, and the next worker takes it over. It goes when all that it
    had to give is stored.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="embedding_shares")
    first_image = models.BigIntegerField(help_text="the lowest image id, included")
    last_image = models.BigIntegerField(help_text="the highest image id, included")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(first_image__lte=models.F("last_image")),
                name="embedding_share_range",
            ),
        ]

    def __str__(self) -> str:
        return f"images {self.first_image} to {self.last_image} of job {self.job_id}"
