"""The form of the simulations' page."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings

from extras.simulation.report import Plan
from releases.making.labels import complete_queries

#: Orders as pages name them; a reader's are named as they are.
ORDER_TITLES: Final = {
    "frozen": "CLIP order",
    "active": "Order that learns",
    "random": "Random order",
}
MOST_SEEDS: Final = 2000


class SimulationForm(forms.Form):
    """Which query is labeled again, and how; `plan` once it is valid."""

    query = forms.ModelChoiceField(
        complete_queries(),
        to_field_name="query_id",
        label="Number of the query",
        widget=forms.NumberInput,
        error_messages={"invalid_choice": "No complete query has this number."},
    )
    orders = forms.MultipleChoiceField(
        label="Orders",
        choices=list(ORDER_TITLES.items()),
        initial=list(ORDER_TITLES),
        widget=forms.CheckboxSelectMultiple,
    )
    stops = forms.CharField(
        label="Stop rules",
        initial=", ".join(Plan().stops),
        help_text="Separated by commas: streak:100, or streak:100:500 with a minimum of labels; "
        "certificate:0.9; exhausted.",
    )
    seeds = forms.IntegerField(
        label="Seeds",
        min_value=1,
        max_value=MOST_SEEDS,
        initial=Plan().seeds,
        help_text=f"Runs of what depends on chance; {Plan().active_seeds} at most in the order "
        "that learns.",
    )
    noise = forms.FloatField(
        label="Missed",
        min_value=0,
        max_value=0.9,
        initial=0,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text="The share of the relevant images that a person misses, from 0 to 0.9.",
    )
    reader = forms.CharField(
        label="Reader",
        required=False,
        help_text="A machine that reads along, by its AUC, as auc:0.9: then also the order that "
        "learns with what it says (“read”), and of what it keeps alone (“screened”).",
    )

    def clean(self) -> dict[str, Any]:
        """Make the plan."""
        data = super().clean() or {}
        if not self.errors:
            try:
                self.plan = Plan(
                    orders=tuple(data["orders"]),
                    stops=tuple(stop.strip() for stop in data["stops"].split(",")),
                    noise=data["noise"],
                    seeds=data["seeds"],
                    streak=settings.STOP_STREAK,
                    readers=(data["reader"],) if data["reader"] else (),
                )
            except ValueError as error:
                self.add_error(None, str(error))
        return data
