"""What an admin chooses a model by: what is here, what it costs, and what has failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from core.jobs.models import Job
from retrieval.corpus.counts import image_count
from retrieval.embedding.counts import corpus_coverage
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.measuring import KIND as MEASURE_KIND
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.services import KIND as EMBED_KIND
from retrieval.encoding.model_specs import CONFIG_NAME

_KINDS: Final = (EMBED_KIND, MEASURE_KIND)


@dataclass(frozen=True)
class ListedModel:
    """A model that is here, and what it has embedded of the corpus."""

    model: EmbeddingModel
    embedded: int
    images: int
    in_use: bool
    in_pool: bool

    @property
    def whole(self) -> bool:
        """Whether it has embedded every image."""
        return self.embedded >= self.images > 0

    @property
    def hours_left(self) -> float | None:
        """Hours for the images that it has not embedded; None before it was measured."""
        seconds = self.model.seconds_per_image
        return None if seconds is None else max(0, self.images - self.embedded) * seconds / 3600


def models_listed() -> list[ListedModel]:
    """Return the models that are here, the one in use first, then by name."""
    used, images, pool = model_in_use(), image_count(), set(settings.POOL_MODELS)
    listed = [
        ListedModel(row.model, row.embedded, images, row.model.name == used, row.model.name in pool)
        for row in corpus_coverage()
    ]
    return sorted(listed, key=lambda row: not row.in_use)


def local_models() -> list[str]:
    """Return the folders of models that were copied into MODELS_DIR, by name."""
    return sorted(str(path.parent) for path in Path(settings.MODELS_DIR).glob(f"*/{CONFIG_NAME}"))


def failed_job() -> Job | None:
    """Return the newest job that embeds or measures, if it failed this week: pages say why."""
    newest = Job.objects.filter(kind__in=_KINDS).order_by("-pk").first()
    if newest is None or newest.state != Job.State.FAILED or newest.finished_at is None:
        return None
    return newest if newest.finished_at > timezone.now() - timedelta(days=7) else None
