"""The images of a release as they are passed on."""

from __future__ import annotations

from retrieval.corpus.models import Image
from retrieval.images.storage import is_stored
from retrieval.images.stored import PictureGone, PictureRef, RootUnavailable, public_bytes


def released_image_bytes(image_id: int, file_name: str, sha256: str) -> bytes | None:
    """Return an image as a release knows it, without metadata; None where its file isn't here or
    cannot be read.

    In the store they are found by `sha256`. An image that stays where it is is known by its id and
    path, and its bytes are hashed: a file that isn't the one that was released is none. Where the
    release has no `sha256` (nobody had read the file), it is the file that is there now, also if it
    was brought into the store since. RootUnavailable: the place doesn't answer, so that nobody
    knows.
    """
    if sha256 and is_stored(sha256):
        ref = PictureRef(sha256, None, file_name)
    else:
        image = Image.objects.filter(pk=image_id, file_name=file_name).first()
        if image is None:
            return None
        ref = PictureRef(sha256 or image.sha256, image.root_id, file_name)
    try:
        return public_bytes(ref)
    except RootUnavailable:
        raise
    except PictureGone:
        return None
