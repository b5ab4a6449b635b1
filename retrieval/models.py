"""The models of this app, defined in subfolders; Django imports them from here."""

from retrieval.browsing.models import SavedFilter
from retrieval.corpus.models import (
    CorpusCount,
    CustomField,
    DatasetMark,
    Image,
    ImageRoot,
    ImageTakedown,
    ImageWithdrawal,
    Species,
    SpeciesCount,
    SpeciesName,
)
from retrieval.embedding.models import (
    Embedding,
    EmbeddingCount,
    EmbeddingModel,
    EmbeddingRange,
    EmbeddingRemoval,
    TextVector,
    WorkerMachine,
)
from retrieval.flags.models import ImageFlag

__all__ = [
    "CorpusCount",
    "CustomField",
    "DatasetMark",
    "Embedding",
    "EmbeddingCount",
    "EmbeddingModel",
    "EmbeddingRange",
    "EmbeddingRemoval",
    "Image",
    "ImageFlag",
    "ImageRoot",
    "ImageTakedown",
    "ImageWithdrawal",
    "SavedFilter",
    "Species",
    "SpeciesCount",
    "SpeciesName",
    "TextVector",
    "WorkerMachine",
]
