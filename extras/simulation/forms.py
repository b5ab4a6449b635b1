"""The form of the simulations' page."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.conf import settings

from extras.simulation.readers import parse_reader
from extras.simulation.report import Plan
from releases.making.labels import complete_queries

#: Orders as pages name them.
ORDER_TITLES: Final = {
    "frozen": "CLIP order",
    "active": "Order that learns",
    "random": "Random order",
}
READ_TITLES: Final = {"read": "Learns with reader", "screened": "Screened by reader"}
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
        help_text="A machine that reads along, by its AUC: auc:0.9, or auc:0.9:0.5 with the "
        "correlation of its errors with CLIP's.",
    )

    def clean_reader(self) -> tuple[str, ...]:
        """The readers of the plan: one or none."""
        text = self.cleaned_data["reader"]
        try:
            return (str(parse_reader(text)),) if text else ()
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

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
                    readers=data["reader"],
                )
            except ValueError as error:
                self.add_error("stops", str(error))
        return data


def order_title(order: str) -> str:
    """An order as pages name it."""
    kind, _, reader = order.partition(" ")
    return f"{READ_TITLES[kind]} {reader}" if reader else ORDER_TITLES[order]
