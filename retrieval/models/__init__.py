from retrieval.models.embedding import Embedding, EmbeddingModel
from retrieval.models.image import Image
from retrieval.models.job import Job, JobItemError
from retrieval.models.species import Species, SpeciesName

__all__ = ["Embedding", "EmbeddingModel", "Image", "Job", "JobItemError", "Species", "SpeciesName"]
