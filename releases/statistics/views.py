"""The statistics page of a release."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from core.access import require_evaluator
from core.files import whole_file
from releases import selectors
from releases.snapshot.snapshot import Snapshot
from releases.statistics.numbers import FORM, Numbers, release_statistics
from releases.statistics.sections import sections


@login_required
@require_safe
def statistics(request: HttpRequest, pk: int) -> HttpResponse:
    """Charts of a release; of its validation split alone where the labels of the test split are
    hidden from the reader."""
    require_evaluator(request.user)
    release = get_object_or_404(selectors.releases(), pk=pk)
    if not release.files_ready:
        raise Http404("The release isn't made yet.")
    snapshot = selectors.snapshot_for(request.user, release)
    context: dict[str, Any] = {"release": release}
    if snapshot is not None:
        numbers = statistics_of(snapshot)
        context["labels_hidden"] = snapshot.header.test_labels == "withheld"
        context |= {"numbers": numbers, "sections": sections(numbers)}
    return render(request, "releases/statistics.html", context)


def statistics_of(snapshot: Snapshot) -> Numbers:
    """The numbers of a made release, stored beside its snapshot, which never changes."""
    path = snapshot.statistics_path
    try:
        stored: Numbers = json.loads(path.read_text(encoding="utf-8"))
        if stored.get("form") == FORM:
            return stored
    except (OSError, ValueError, AttributeError):
        pass
    numbers = release_statistics(snapshot)
    # A full disk costs only time.
    with suppress(OSError), whole_file(path, durable=False) as file:
        file.write(json.dumps(numbers).encode())
    return numbers
