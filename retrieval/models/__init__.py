from retrieval.models.counts import CorpusCount, SpeciesCount
from retrieval.models.embedding import (
    Embedding,
    EmbeddingCount,
    EmbeddingModel,
    EmbeddingRemoval,
)
from retrieval.models.embedding_share import EmbeddingShare
from retrieval.models.flag import ImageFlag, ImageWithdrawal
from retrieval.models.image import Image
from retrieval.models.job import Job, JobItemError
from retrieval.models.root import ImageRoot
from retrieval.models.species import Species, SpeciesName

__all__ = [
    "CorpusCount",
    "Embedding",
    "EmbeddingCount",
    "EmbeddingModel",
    "EmbeddingRemoval",
    "EmbeddingShare",
    "Image",
    "ImageFlag",
    "ImageRoot",
    "ImageWithdrawal",
    "Job",
    "JobItemError",
    "Species",
    "SpeciesCount",
    "SpeciesName",
]
