from retrieval.models.embedding import Embedding, EmbeddingModel
from retrieval.models.flag import ImageFlag, ImageWithdrawal
from retrieval.models.image import Image
from retrieval.models.job import Job, JobItemError
from retrieval.models.species import Species, SpeciesName

__all__ = [
    "Embedding",
    "EmbeddingModel",
    "Image",
    "ImageFlag",
    "ImageWithdrawal",
    "Job",
    "JobItemError",
    "Species",
    "SpeciesName",
]
