"""What the embedding of images tells those that keep something made of the embeddings."""

from django.dispatch import Signal

#: Sent once many embeddings of a model were stored: with `model` and `created_by` (None where no
#: person asked for them).
embeddings_stored = Signal()
