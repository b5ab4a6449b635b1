"""What multimodal models answered."""

from __future__ import annotations

from django.db import models

from retrieval.corpus.models import Image


class ModelAnswer(models.Model):
    """A multimodal model's answer to a prompt about an image, stored so that it is paid for once.

    Source: Vendrow et al. 2024, section 4: s = e^yes / (e^yes + e^no).
    """

    endpoint = models.CharField(max_length=300, help_text="base address of the server")
    model = models.CharField(max_length=200, help_text="as the server names it")
    prompt_sha256 = models.CharField(max_length=64)
    # No index of its own: the constraint serves the look-ups.
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+", db_index=False)
    image_sha256 = models.CharField(
        max_length=64,
        help_text="of the image's source file, and of the size if it was sent smaller",
    )
    yes = models.FloatField(null=True, help_text="log-probability of yes; empty if not given")
    no = models.FloatField(null=True, help_text="log-probability of no; empty if not given")
    score = models.FloatField(help_text="from 0 to 1")
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    answered_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "model", "prompt_sha256", "image"],
                name="model_answer_once",
            ),
            models.CheckConstraint(
                condition=models.Q(score__range=(0, 1)), name="model_answer_score"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} on {self.image_id}: {self.score:.3f}"
