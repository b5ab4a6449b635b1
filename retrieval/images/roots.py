"""Places whose pictures stay where they are."""

from __future__ import annotations

from retrieval.corpus.models import ImageRoot
from retrieval.images.root_files import RootRefused, root_files


def image_root_get_or_create(*, location: str) -> ImageRoot:
    """Return the place of that location: an absolute folder, or s3://bucket/prefix.

    Raises RootRefused, with the reason for people, for what is neither, and, before a new one is
    kept, for a place that isn't there.
    """
    files = root_files(location)
    known = ImageRoot.objects.filter(location=files.location).first()
    if known is not None:
        return known
    files.look()
    return ImageRoot.objects.get_or_create(location=files.location)[0]


__all__ = ["RootRefused", "image_root_get_or_create"]
