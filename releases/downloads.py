"""Downloads of a release's files, by those who may have them."""

from __future__ import annotations

import mimetypes
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import SlicedFile, StaticFile

from core import storage
from releases import selectors
from releases.access import file_visible_to
from releases.models import Release

_TYPES: Final = {
    ".csv": "text/csv; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


def file_response(request: HttpRequest, release: Release, name: str) -> HttpResponseBase:
    """A listed file of a release as a download. Http404 for another name or a lost file,
    PermissionDenied for a file that the user may not have.
    """
    entry = selectors.release_file_entry(release=release, name=name)
    if entry is None:
        raise Http404("The release has no such file.")
    if not file_visible_to(request.user, release, selectors.access_of(entry)):
        raise PermissionDenied("This file holds labels of the test split.")
    path = selectors.release_file_path(release=release, name=name)
    if path is None:
        raise Http404("The file is lost.")
    return _download(request, path, content_type(name))


def archive_response(request: HttpRequest, release: Release) -> HttpResponseBase:
    """The archive of the files that the user may have, as a download. Http404 where there is
    none."""
    archive = selectors.archive_for(request.user, release)
    path = release.directory / archive["name"] if archive else None
    if path is None or not storage.exists(path):
        raise Http404("The release has no archive.")
    return _download(request, path, "application/zip")


def _download(request: HttpRequest, path: Path, media_type: str) -> HttpResponseBase:
    """The file, or the range of it that is asked for; from a bucket by a signed address."""
    if storage.is_shared():
        return redirect(storage.signed_address(path, content_type=media_type))
    headers = [
        ("Content-Type", media_type),
        ("Content-Disposition", f'attachment; filename="{path.name}"'),
        ("Accept-Ranges", "bytes"),
    ]
    file = StaticFile(str(path), headers)
    # A range of an earlier version, before a takedown.
    if request.META.get("HTTP_IF_RANGE", file.etag) != file.etag:
        request.META.pop("HTTP_RANGE", None)
    answer: HttpResponseBase = WhiteNoiseMiddleware.serve(file, request)
    part = getattr(answer, "file_to_stream", None)
    if isinstance(part, SlicedFile):
        # Where a file has positions, the web server sends Content-Length bytes from here on by
        # itself; otherwise a thread would be kept for as long as somebody reads.
        file = part.fileobj
        answer.file_to_stream = SimpleNamespace(  # type: ignore[attr-defined]
            read=file.read, seek=file.seek, tell=file.tell, seekable=file.seekable
        )
    return answer


def content_type(name: str) -> str:
    """The media type of a file, by its name."""
    known = _TYPES.get(PurePosixPath(name).suffix.lower())
    return known or mimetypes.guess_type(name)[0] or "application/octet-stream"
