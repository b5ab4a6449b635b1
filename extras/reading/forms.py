"""The forms of readers: a new one, and what it reads."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from evaluation.reranking.multimodal.prompt import PLACEHOLDER
from evaluation.runs.forms import number_field
from extras.reading.models import Reader
from extras.reading.prompt import TEMPLATE
from extras.reading.readers import installed_readers
from extras.reading.reading_job import MAX_DEPTH
from labeling.queries.models import Benchmark


class ReaderForm(forms.ModelForm[Reader]):
    """A new reader, as the form's instance once it is valid."""

    endpoint = forms.ChoiceField(required=False, label="Server")
    price_in = number_field("Price of input", "US dollars for a million tokens.")
    price_out = number_field("Price of output", "US dollars for a million tokens.")
    entry_point = forms.ChoiceField(required=False, label="or Python entry point")

    class Meta:
        model = Reader
        fields = (
            "name", "endpoint", "model", "entry_point", "family", "prompt",
            "requests_per_minute", "price_in", "price_out",
        )  # fmt: skip
        help_texts = {
            "prompt": f"{PLACEHOLDER} and {{guidelines}} stand for the query’s. The answer is a "
            "digit from 0 to 3."
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        declared: dict[str, Any] = self.fields
        for field, names in (
            ("endpoint", settings.MULTIMODAL_ENDPOINTS),
            ("entry_point", installed_readers()),
        ):
            declared[field].choices = [("", "—"), *((name, name) for name in names)]
        self.initial.setdefault("prompt", TEMPLATE)

    def clean(self) -> dict[str, Any]:
        """Take the server's address."""
        data = super().clean() or {}
        self.instance.base_url = settings.MULTIMODAL_ENDPOINTS.get(data.get("endpoint", ""), "")
        return data


class ReadingForm(forms.Form):
    """Which images are read, and what that may cost."""

    queries = forms.CharField(
        initial="open", help_text="open, all, or numbers separated by commas: 3, 17"
    )
    benchmark = forms.ModelChoiceField(
        Benchmark.objects.order_by("name"), required=False, empty_label="All"
    )
    depth = forms.IntegerField(
        min_value=1,
        max_value=MAX_DEPTH,
        initial=100,
        help_text="How many of each query’s first images; judged ones too, since these show how "
        "far the reader is to be believed.",
    )
    max_cost = number_field("Budget", "US dollars; nothing more is sent once it could be passed.")
