"""The card of a reader's page that shows how far it is to be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from core.access import Role, require_role
from core.pages import refusal_in_message
from extras.reading.calibration import LEAST, TooFew
from extras.reading.calibrations import calibrate, latest, reader_figures
from extras.reading.figures import Accuracy
from extras.reading.models import Reader
from releases.charts import ACCENT, MUTED, SERIES, SHAPES, chart, name, number

JUDGED, DRAWN = "Judged", "Audits"
#: In pixels.
HEIGHT: Final = 320


def card(request: HttpRequest, reader: Reader) -> str:
    """How far a reader is to be believed, safe HTML for reviewers."""
    context: dict[str, Any] = {"reader": reader, "calibration": latest(reader), "least": LEAST}
    try:
        figures = reader_figures(reader)
        shown = {JUDGED: figures.judged} | ({DRAWN: figures.drawn} if figures.drawn else {})
        context |= {"figures": figures, "shown": shown, "chart": reliability_chart(shown)}
    except TooFew as error:
        context["too_few"] = str(error)
    return render_to_string("reading/calibration.html", context, request)


@login_required
@require_POST
def reader_calibrate(request: HttpRequest, pk: int) -> HttpResponse:
    """Calibrate a reader by the present labels."""
    require_role(request.user, Role.REVIEWER)
    with refusal_in_message(request):
        calibrate(reader=get_object_or_404(Reader, pk=pk))
    return redirect("reader", pk)


def reliability_chart(shown: Mapping[str, Accuracy]) -> SafeString:
    """The shares of relevant images against their calibrated probabilities, with intervals."""
    values = [{"of": of} | asdict(at) for of, accuracy in shown.items() for at in accuracy.bins]
    axes = {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    legend = {"orient": "top", "title": None} if len(shown) > 1 else None
    x = number("calibrated", title="calibrated probability", **axes)
    y = number("found", title="relevant images", **axes)
    of = {"domain": [JUDGED, DRAWN]}
    color = name("of", scale=of | {"range": [ACCENT, SERIES[2]]}, legend=legend)
    shape = name("of", scale=of | {"range": SHAPES[:2]}, legend=legend)
    layers = [
        {
            "data": {"values": [{"calibrated": at, "found": at} for at in (0, 1)]},
            "mark": {"type": "line", "color": MUTED, "strokeDash": [4, 4]},
            "encoding": {"y": y},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": number("low"), "y2": {"field": "high"}, "color": color},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
            "encoding": {"y": y, "color": color, "shape": shape},
        },
    ]
    spec = {"data": {"values": values}, "encoding": {"x": x}, "layer": layers}
    size = {"width": "container", "height": HEIGHT}
    return chart(spec | size, label="Shares of relevant images by calibrated probability")
