"""Forms of releases."""

from __future__ import annotations

from typing import Any

from django import forms

from labeling.queries.models import Benchmark
from releases.models import Release
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.in_use import model_in_use


class ReleaseForm(forms.Form):
    """What an admin chooses for a release."""

    name = forms.CharField(
        max_length=Release._meta.get_field("name").max_length,
        label="Name",
        help_text="A new name begins a benchmark; an existing name gets its next version.",
        widget=forms.TextInput(attrs={"list": "release-names", "autocomplete": "off"}),
    )
    benchmark = forms.ModelChoiceField(
        Benchmark.objects.filter(screening=False).order_by("name"),
        label="Benchmark",
        help_text="Its completed queries go in. All versions of a name are of the same benchmark.",
    )
    rerank_model = forms.ChoiceField(
        required=False,
        label="Fixed lists for re-ranking",
        help_text="The 100 best images of the whole corpus for each query, by this model.",
    )
    include_images = forms.BooleanField(
        required=False, label="Include the images’ bytes in the folders for Hugging Face and MTEB"
    )

    test_labels = forms.ChoiceField(
        choices=Release.TestLabels.choices,
        initial=Release.TestLabels.HIDDEN,
        required=False,
        label="Labels of the test split",
        help_text="Nobody can tune a method on hidden labels. This can’t be changed later.",
    )

    test_halves = forms.BooleanField(
        required=False,
        label="Divide the test split into a public and a private half",
        help_text="Researchers see means over the public half until you close the leaderboard, and "
        "later versions have the same halves until then.",
    )

    pay_per_hour = forms.CharField(
        required=False,
        max_length=30,
        label="Pay per hour",
        help_text="What people were paid, such as “15.50 USD”; for the datasheet.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if Benchmark.objects.filter(screening=False).count() < 2:
            del self.fields["benchmark"]
        names = [model.name for model in embedded_models()]
        field = self.fields["rerank_model"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [("", "No fixed lists"), *((name, name) for name in names)]
        if model_in_use() in names:
            field.initial = model_in_use()

    @property
    def options(self) -> dict[str, Any]:
        """The options of `services.release_create`, of a valid form."""
        return {key: self.cleaned_data[key] for key in self.fields.keys() - {"name", "benchmark"}}
