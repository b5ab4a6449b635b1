"""What a complete query's labels say about nature."""

from __future__ import annotations

import csv
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from core.access import Role, require_role
from core.geo_grid import BAND, CELL
from core.world_map import dots
from extras.nature.drawing import shares_chart
from extras.nature.figures import COLUMNS, Nature, nature_of
from labeling.judging.access import get_query_for
from labeling.queries.models import Query

#: So many species and cells are listed; the CSV file has all.
MOST_LISTED = 20


@login_required
@require_safe
def nature(request: HttpRequest, pk: int) -> HttpResponse:
    """Maps, seasons, years, species and elevations of a complete query's relevant images."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    if query.state != Query.State.COMPLETE:
        return redirect("query-detail", pk=pk)
    found = nature_of(query)
    plots = [
        ("Months", "month", found.months),
        ("Years", "year", found.years),
        ("Species", "species", found.species[:MOST_LISTED]),
        (f"Elevation, in bands of {BAND} m", "elevation from, m", found.elevations),
    ]
    shown = [
        {
            "title": title,
            "head": head,
            "rows": [(row, _share(row.relevant, row.images)) for row in rows],
            "chart": shares_chart(rows, found, label=_words(title, rows)),
        }
        for title, head, rows in plots
        if any(row.relevant for row in rows)
    ]
    return render(
        request,
        "nature/nature.html",
        {
            "query": query,
            "nature": found,
            "plots": shown,
            "maps": _maps(found),
            "cells": [(*cell, _share(*cell[2:])) for cell in found.cells[:MOST_LISTED]],
            "cell_size": CELL,
        },
    )


@login_required
@require_safe
def nature_file(request: HttpRequest, pk: int) -> HttpResponse:
    """All figures as CSV."""
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    if query.state != Query.State.COMPLETE:
        return redirect("query-detail", pk=pk)
    answer = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="nature-{query.pk}.csv"'},
    )
    writer = csv.writer(answer)
    writer.writerow(COLUMNS)
    writer.writerows(nature_of(query).rows())
    return answer


def _share(relevant: int, images: int) -> str:
    return f"{relevant / images:.1%}" if images else ""


def _words(title: str, rows: Any) -> str:
    most = max(rows, key=lambda row: row.relevant)
    return f"{title}: most relevant images, {most.relevant:,}, are of {most.value}."


def _maps(found: Nature) -> list[tuple[str, Any]]:
    """The map of the relevant images, and of all of their species."""
    if not found.cells:
        return []
    maps = []
    for title, at in (("Relevant images", 2), ("All images of these species", 3)):
        cells = [[cell[0], cell[1], cell[at]] for cell in found.cells if cell[at]]
        cells.sort(key=lambda cell: -cell[2])
        if cells:
            label = f"{title} in {len(cells)} cells of {CELL}°; the largest holds {cells[0][2]:,}."
            maps.append((title, dots(cells, label=label)))
    return maps
