"""The source files of released images."""

from __future__ import annotations

from retrieval.models import Image
from retrieval.pictures import PictureGone, PictureRef, RootUnavailable, source_bytes
from retrieval.storage import source_read


def released_picture(image_id: int, file_name: str, sha256: str) -> bytes | None:
    """Return the bytes of an image's source file as a release knows it; None where they aren't
    here.

    In the store they are found by `sha256`. An image that stays where it is is known by its id and
    path, and its bytes are hashed: a file that isn't the one that was released is none. Where the
    release has no `sha256` (nobody had read the file), it is the file that is there now, also if it
    was brought into the store since. RootUnavailable: the place doesn't answer, so that nobody
    knows.
    """
    if sha256:
        data = source_read(sha256)
        if data is not None:
            return data
    image = Image.objects.filter(pk=image_id, file_name=file_name).first()
    if image is None:
        return None
    try:
        return source_bytes(PictureRef(sha256 or image.sha256, image.root_id, file_name))
    except RootUnavailable:
        raise
    except PictureGone:
        return None
