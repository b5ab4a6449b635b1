"""The form of the re-ranking page: it checks what was typed; the services do the writing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.forms import ModelChoiceField

from evaluation.reranking.multimodal.answers import Prices
from evaluation.reranking.multimodal.prompt import PLACEHOLDER, TEMPLATE
from evaluation.reranking.pairs import first_stages
from evaluation.reranking.services import MAX_NAME, RerankChoice
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.forms import number_field
from evaluation.runs.models import Run
from releases.models import Release
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel

EMBEDDING = "embedding"
MULTIMODAL = "multimodal"
FIXED = "fixed"
USUAL_DEPTH = 100
USUAL_RPM = 300


class ModelChoice(ModelChoiceField[EmbeddingModel]):
    """A choice of embedding models by name."""

    def label_from_instance(self, obj: EmbeddingModel) -> str:
        """The model's name."""
        return obj.name


class RerankForm(forms.Form):
    """What is re-ranked, how deep, by which model, and at which price."""

    first_stage = forms.ChoiceField(label="First stage")
    depth = forms.IntegerField(label="Depth", min_value=1, initial=USUAL_DEPTH)
    kind = forms.ChoiceField(
        label="Re-ranked by",
        choices=[(EMBEDDING, "Embedding model"), (MULTIMODAL, "Multimodal model")],
        widget=forms.RadioSelect,
        initial=EMBEDDING,
    )
    embedding_model = ModelChoice(
        EmbeddingModel.objects.none(), required=False, label="Embedding model", empty_label=None
    )
    endpoint = forms.ChoiceField(required=False, label="Server")
    api_model = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        help_text="As the server names it. It must take images and give log-probabilities.",
    )
    prompt = forms.CharField(
        required=False,
        initial=TEMPLATE,
        label="Prompt",
        help_text=f"{PLACEHOLDER} stands for the query’s text. The score is the probability of yes "
        "against no as the first word of the answer.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    price_in = number_field("Price of input", "US dollars for a million tokens.")
    price_out = number_field("Price of output", "US dollars for a million tokens.")
    max_cost = number_field(
        "Cost limit", "US dollars. The run stops there, and continues when you raise it."
    )
    rpm = forms.IntegerField(
        required=False,
        min_value=0,
        initial=USUAL_RPM,
        label="Requests a minute",
        help_text="At most; 0 for no limit.",
    )
    name = forms.CharField(
        required=False,
        max_length=MAX_NAME,
        label="Name",
        help_text="The name on the leaderboard; empty for a name made from the other fields.",
    )

    def __init__(self, *args: Any, release: Release, fixed: int, **kwargs: Any) -> None:
        """`fixed`: how many queries have a fixed list."""
        super().__init__(*args, **kwargs)
        self.release = release
        runs = first_stages(release)
        choices = [(str(run.pk), run.name) for run in runs]
        if fixed:
            choices.append((FIXED, f"Fixed lists of the re-ranking task ({fixed} queries)"))
        self._declared("first_stage").choices = choices
        models = embedded_models()
        self._declared("embedding_model").queryset = models
        self._declared("endpoint").choices = [
            (name, f"{name} – {address}") for name, address in settings.MULTIMODAL_ENDPOINTS.items()
        ]
        depth = self.fields["depth"]
        depth.help_text = (
            f"How many of each query’s first images are re-ranked: 50 and 100 in the INQUIRE "
            f"paper, at most {settings.RERANK_MAX_DEPTH:,}."
        )
        depth.widget.attrs["max"] = settings.RERANK_MAX_DEPTH
        self.runs = {str(run.pk): run for run in runs}
        self.has_models = models.exists()
        self.has_endpoints = bool(settings.MULTIMODAL_ENDPOINTS)

    def _declared(self, name: str) -> Any:
        return self.fields[name]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        required = (
            ["embedding_model"] if data.get("kind") == EMBEDDING else ["endpoint", "api_model"]
        )
        for name in required:
            if not data.get(name) and name not in self.errors:
                self.add_error(name, "This is needed.")
        return data

    @property
    def choice(self) -> RerankChoice:
        """The choice, once the form is valid."""
        data = self.cleaned_data
        by_embedding = data["kind"] == EMBEDDING
        first: Run | None = self.runs.get(data["first_stage"])
        setup = EndpointSetup(
            base_url=settings.MULTIMODAL_ENDPOINTS.get(data["endpoint"], ""),
            model=data["api_model"],
            prompt=data["prompt"] or TEMPLATE,
            rpm=data["rpm"] or 0,
            prices=Prices(data["price_in"], data["price_out"]),
            max_cost=data["max_cost"],
        )
        return RerankChoice(
            release=self.release,
            first_stage=first,
            depth=data["depth"],
            embedding_model=data["embedding_model"] if by_embedding else None,
            endpoint=None if by_embedding else setup,
            name=data["name"],
        )


class ResumeForm(forms.Form):
    """The limits with which a run that stopped is resumed."""

    max_cost = number_field("Cost limit, US dollars", "")
    rpm = forms.IntegerField(required=False, min_value=0, label="Requests a minute")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["placeholder"] = "no limit"
