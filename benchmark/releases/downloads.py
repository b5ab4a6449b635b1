"""Answers that hold a release's files, to those who may have them."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404

from benchmark.releases import selectors
from benchmark.releases.access import file_visible_to
from benchmark.releases.models import Release

_TYPES: Final = {
    ".csv": "text/csv; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


def file_response(user: Any, release: Release, name: str) -> FileResponse:
    """A listed file of a release as a download. Http404 for another name or a lost file,
    PermissionDenied for a file that the user may not have.
    """
    entry = selectors.release_file_entry(release=release, name=name)
    if entry is None:
        raise Http404("The release has no such file.")
    if not file_visible_to(user, release, selectors.access_of(entry)):
        raise PermissionDenied("This file holds labels of the test split.")
    path = selectors.release_file_path(release=release, name=name)
    if path is None:
        raise Http404("The file is lost.")
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=path.name, content_type=content_type(name)
    )


def archive_response(user: Any, release: Release) -> FileResponse:
    """The archive of the files that the user may have, as a download. Http404 where there is
    none."""
    archive = selectors.archive_for(user, release)
    path = release.directory / archive["name"] if archive else None
    if path is None or not path.is_file():
        raise Http404("The release has no archive.")
    return FileResponse(
        path.open("rb"), as_attachment=True, filename=path.name, content_type="application/zip"
    )


def content_type(name: str) -> str:
    """What kind of file a name is of."""
    known = _TYPES.get(PurePosixPath(name).suffix.lower())
    return known or mimetypes.guess_type(name)[0] or "application/octet-stream"
