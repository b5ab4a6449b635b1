"""Forms of the run pages: they check what was typed; the services do the writing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms import ModelForm

from evaluation.runs.models import Run
from evaluation.runs.services import CARD_FIELDS, LARGEST_NUMBER
from evaluation.runs.unjudged import DEPTH, MOST
from releases.models import Release

WEIGHTS = [("", "Not stated"), ("true", "Open"), ("false", "Closed")]
SPLIT_CHOICES = [
    ("all", "Both splits"),
    ("val", "Validation split alone"),
    ("test", "Test split alone"),
]


def number_field(label: str, help_text: str) -> forms.FloatField:
    """An optional number, not below 0."""
    return forms.FloatField(
        required=False,
        min_value=0,
        max_value=LARGEST_NUMBER,
        label=label,
        help_text=help_text,
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )


class MethodCardForm(ModelForm[Run]):
    """The fields of a method card."""

    open_weights = forms.TypedChoiceField(
        choices=WEIGHTS,
        required=False,
        coerce=lambda value: value == "true",
        empty_value=None,
        label="Weights",
        help_text="Whether anybody can download the model.",
    )
    link = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        help_text="Paper or code.",
        widget=forms.TextInput(attrs={"inputmode": "url", "placeholder": "https://"}),
    )
    code = forms.URLField(
        required=False,
        max_length=500,
        assume_scheme="https",
        label="Code",
        help_text="Where others find it.",
        widget=forms.TextInput(attrs={"inputmode": "url", "placeholder": "https://"}),
    )
    tuning = forms.ChoiceField(
        choices=[("", "Not stated"), *Run.Tuning.choices],
        required=False,
        help_text="Zero-shot: not trained on labels of this corpus or task.",
    )
    parameters = number_field(
        "Parameters, in millions", "For example 986 for ViT-H/14, text and image side together."
    )
    cost = number_field("Cost, in US dollars", "What the whole run cost to make.")

    class Meta:
        model = Run
        fields = ("name", "link", "code", "parameters", "training_data", "tuning", "open_weights",
                  "cost", "description")  # fmt: skip
        labels = {"name": "Method", "training_data": "Training data"}
        help_texts = {
            "name": "The name on the leaderboard.",
            "training_data": "For example DFN-5B.",
            "description": "What is ranked how; prompts, ensembles, first stages.",
        }
        widgets = {
            "description": forms.Textarea(attrs={"rows": 3}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        weights = self.instance.open_weights
        self.initial["open_weights"] = "" if weights is None else str(weights).lower()

    @property
    def card(self) -> dict[str, Any]:
        """The card's fields, once they are valid."""
        return {name: self.cleaned_data[name] for name in CARD_FIELDS}


class JudgeForm(forms.Form):
    """How many of a run's first images are to be judged."""

    depth = forms.IntegerField(min_value=1, max_value=MOST, initial=DEPTH)


class EvaluateForm(forms.Form):
    """A model to evaluate."""

    model = forms.CharField(
        max_length=300,
        help_text="An open_clip model and its pretrained tag, as ViT-B-32/laion2b_s34b_b79k; "
        "hf-hub:OWNER/NAME; or a folder with open_clip_config.json and open_clip_model.safetensors "
        "that lies in the server’s folder of models (MODELS_DIR).",
    )


class SubmitForm(MethodCardForm):
    """A run file, what is in it, and its method card."""

    file = forms.FileField(
        label="Run file",
        allow_empty_file=True,
        help_text="TREC, CSV with the columns query_id, image_id and score, or JSON lines with "
        "these keys; each also compressed with gzip.",
    )
    task = forms.ChoiceField(choices=Run.Task.choices, initial=Run.Task.FULL)
    split = forms.ChoiceField(
        choices=SPLIT_CHOICES,
        label="Queries in it",
        help_text="A query of the other split is an error.",
    )

    def __init__(self, *args: Any, release: Release, rerank: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not rerank:
            self.fields["task"] = forms.ChoiceField(choices=[Run.Task.choices[0]])
        splits = {"val": release.val_queries, "test": release.test_queries}
        filled = [split for split, count in splits.items() if count]
        if len(filled) == 1:
            self.fields["split"].initial = filled[0]
