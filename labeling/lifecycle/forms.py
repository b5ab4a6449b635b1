"""Forms of the query pages: they check what was typed; the services do the writing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from core.ids import ids_of
from labeling.queries.categories import ICONIC_GROUPS
from labeling.queries.models import Query
from retrieval.corpus.models import Species
from retrieval.species.selectors import species_resolve


class QueryForm(forms.ModelForm):
    """A query's fields; `cleaned_data["species"]` holds the picked species and those named."""

    text = forms.CharField(
        strip=False,
        max_length=500,
        label="Query text",
        help_text="What an image must show, for example “a mongoose standing upright alert”.",
    )
    species = forms.ModelMultipleChoiceField(
        Species.objects.all(), required=False, widget=forms.MultipleHiddenInput
    )
    species_names = forms.CharField(
        required=False,
        label="Add by name",
        help_text="Species, genera, families or look-alike groups, one per line or separated by "
        "commas; a group adds all its species.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    class Meta:
        model = Query
        fields = (
            "text",
            "category",
            "iconic_group",
            "split",
            "query_id",
            "scientific_terms",
            "guidelines",
            "order",
            "hand_in_rule",
            "grades",
        )
        labels = {
            "query_id": "Query number",
            "scientific_terms": "Uses terms that only an expert knows",
            "hand_in_rule": "Rule for handing in",
        }
        help_texts = {
            "query_id": "The number in the CSV files. Leave it empty for the next free one.",
            "order": "The order that learns finds more of what the model misses; the stop rule "
            "speaks of the CLIP order either way.",
            "guidelines": "What counts as relevant; annotators see it beside each image. Markdown "
            "works, and ![caption](image:12345) shows the image of the corpus with that id.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.original = (self.instance.text, self.instance.query_id)
        self.fields["query_id"].required = self.fields["order"].required = False
        self.fields["hand_in_rule"].help_text = (
            "Streak, certificate:0.9 (a recall that audits certify) or exhausted, joined by “and” "
            f"or “or”. Leave it empty for the usual: {settings.HAND_IN_RULE}."
        )
        groups = [(name, name) for name in ICONIC_GROUPS if name]
        self.fields["split"] = forms.ChoiceField(
            choices=[("", "To be drawn"), *Query.Split.choices],
            required=False,
            help_text="An admin draws the splits together; until then it counts as test.",
        )
        if self.instance.pk and not self.instance.split_settled:
            self.initial["split"] = ""
        self.fields["iconic_group"] = forms.ChoiceField(
            choices=[("", "None in particular"), *groups], required=False, label="Iconic group"
        )
        if self.instance.pk and not self.is_bound:
            self.initial["species"] = [s.pk for s in self.instance.species.all()]

    def clean_text(self) -> str:
        """Without surrounding blanks, but an imported text stays byte for byte until it changes."""
        text: str = self.cleaned_data["text"].strip()
        return self.original[0] if text == self.original[0].strip() else text

    def clean_query_id(self) -> int | None:
        """An emptied number stays what it was; a new query's is the next free one."""
        number: int | None = self.cleaned_data["query_id"]
        return self.original[1] if number is None else number

    def clean_order(self) -> str:
        """One that isn't sent stays what it was."""
        return self.cleaned_data["order"] or self.instance.order

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        names = [
            name.strip()
            for line in cleaned.get("species_names", "").splitlines()
            for name in line.split(",")
            if name.strip()
        ]
        found, missing = species_resolve(names)
        if missing:
            self.add_error("species_names", f"Not in the corpus: {', '.join(map(str, missing))}.")
        picked = list(cleaned.get("species") or [])
        cleaned["species"] = list({s.pk: s for s in [*picked, *found]}.values())
        return cleaned

    def picked_species(self) -> list[Species]:
        """The species that the form holds now, for drawing its chips."""
        values = self["species"].value() or []
        pks = ids_of(map(str, values))
        return list(Species.objects.filter(pk__in=pks).prefetch_related("names"))


class QueryImportForm(forms.Form):
    """An uploaded CSV of queries; its name only tells the split, and names no file on disk."""

    file = forms.FileField(label="CSV file")
    split = forms.ChoiceField(
        required=False,
        choices=[("", "As the file name says"), *Query.Split.choices],
        help_text="INQUIRE’s files end in _val.csv and _test.csv.",
    )


class GiveUpForm(forms.Form):
    """A request to reject a query, with its reason."""

    give_up = forms.ChoiceField(label="Reason", choices=Query.RejectReason.choices)
    note = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Needed where the reason is “Other”.",
    )


class RejectForm(forms.Form):
    """The reason of a rejection."""

    reason = forms.ChoiceField(choices=Query.RejectReason.choices)
    note = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 2}))
