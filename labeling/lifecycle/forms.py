"""Forms of the query pages: they check what was typed; the services do the writing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from django import forms
from django.contrib.auth import get_user_model
from django.core import signing
from django.db.models import Q
from django.forms import ModelForm

from core.access import Role
from core.ids import ids_of
from core.terms import TERMS
from labeling.lifecycle.benchmarks import setting_fields
from labeling.lifecycle.imports import LARGEST_UPLOAD
from labeling.lifecycle.services import QUERY_FIELDS
from labeling.lifecycle.team import MOST_WANTED
from labeling.queries.categories import CATEGORIES
from labeling.queries.models import Assignment, Benchmark, Query
from retrieval.corpus.models import Species
from retrieval.species.selectors import species_resolve

_KEPT: Final = "query-import"
_USUAL_RULE: Final = "usual"
_OTHER_RULE: Final = "other"
#: The rules for handing in that a form offers, as they are stored, each with its sentence.
_RULES: Final = {
    "streak or exhausted": "Streak: enough images in a row are not relevant, or the whole list is "
    "labeled.",
    "certificate:0.9": "Certificate: audits show that at least 90 % of the relevant images were "
    "found.",
    "streak and certificate:0.9 or exhausted": "Streak and certificate: enough images in a row are "
    "not relevant, and audits show that at least 90 % were found; or the whole list is labeled.",
    "exhausted": "Whole list: every image of the candidate list is labeled.",
}


class SpeciesForm(forms.Form):
    """A species filter; `cleaned_data["species"]` holds the picked species and those named."""

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


class QueryForm(SpeciesForm, ModelForm[Query]):
    """A query's fields; its benchmark where there are two."""

    #: What stays as it is where nothing is sent; a new query gets the next free number.
    OPTIONAL: Final = ("query_id", "order", "benchmark")
    #: What few queries need: folded unless one of them has an error or isn't as usual.
    MORE: Final = (
        "split", "query_id", "order", "grades", "scientific_terms", "rule_choice", "hand_in_rule",
    )  # fmt: skip
    species_names = None  # type: ignore[assignment]  # the picker takes a list of names

    text = forms.CharField(
        strip=False,
        max_length=500,
        label="Query text",
        help_text="What an image must show, for example “a mongoose standing upright alert”.",
    )
    category = forms.ChoiceField(
        choices=[
            ("", "Choose one"),
            *(
                (supercategory, [(category, category) for category in those])
                for supercategory, those in groupby(CATEGORIES, CATEGORIES.__getitem__)
            ),
        ]
    )
    rule_choice = forms.ChoiceField(
        required=False, widget=forms.RadioSelect, label="Rule for handing in"
    )

    class Meta:
        model = Query
        fields = QUERY_FIELDS
        labels = {
            "query_id": "Query number",
            "scientific_terms": "Uses terms that only an expert knows",
            "hand_in_rule": "The other rule",
        }
        help_texts = {
            "query_id": "The number in the CSV files. Leave it empty for the next free one.",
            "order": "The order that learns finds more of what the model misses; the stop rule "
            "counts in the CLIP order either way.",
            "grades": "Which of four grades are relevant. It can’t change once judgments have "
            "grades.",
            "iconic_group": TERMS["iconic group"],
            "guidelines": "What counts as relevant; annotators see it beside each image. Markdown "
            "works, and ![caption](image:12345) shows the image of the corpus with that id.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.OPTIONAL:
            self.fields[name].required = False
        if Benchmark.objects.count() < 2:
            del self.fields["benchmark"]
        self.fields["hand_in_rule"].help_text = (
            "Streak, certificate:0.9 (a recall that audits certify) or exhausted, joined by “and” "
            "or “or”."
        )
        usual = self.instance.benchmark.setting("HAND_IN_RULE")
        self.fields["rule_choice"].choices = [  # type: ignore[attr-defined]
            (_USUAL_RULE, f"As usual here. {_RULES.get(usual, usual)}"),
            *_RULES.items(),
            (_OTHER_RULE, "Another rule"),
        ]
        rule = self.instance.hand_in_rule or _USUAL_RULE
        self.initial["rule_choice"] = rule if rule in (_USUAL_RULE, *_RULES) else _OTHER_RULE
        self.fields["split"] = forms.ChoiceField(
            choices=[("", "To be drawn"), *Query.Split.choices],
            required=False,
            help_text=f"{TERMS['split']} An admin draws the splits of all queries together; until "
            "then this one counts as test.",
        )
        if self.instance.pk and not self.instance.split_settled:
            self.initial["split"] = ""

    def clean_text(self) -> str:
        """Without surrounding blanks, but an imported text stays byte for byte until it changes."""
        text: str = self.cleaned_data["text"].strip()
        return self.instance.text if text == self.instance.text.strip() else text

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        for name in self.OPTIONAL:
            if name in cleaned and cleaned[name] in (None, ""):
                cleaned[name] = getattr(self.instance, name)
        choice = cleaned.get("rule_choice")
        if choice == _OTHER_RULE and not cleaned.get("hand_in_rule", "").strip():
            self.add_error("hand_in_rule", "Write the rule.")
        elif choice in (_USUAL_RULE, *_RULES):
            cleaned["hand_in_rule"] = "" if choice == _USUAL_RULE else choice
        return cleaned

    def more_open(self) -> bool:
        """Whether a field of MORE has an error or isn't as usual."""
        usual = {
            "query_id": self.instance.query_id,
            "order": Query.Order.CLIP,
            "rule_choice": _USUAL_RULE,
        }
        fields = [self[name] for name in self.MORE]
        return any(
            field.errors or str(field.value() or "") not in ("", str(usual.get(field.name)))
            for field in fields
        )


class BenchmarkForm(SpeciesForm):
    """A benchmark's name, guidelines, species filter, people and settings."""

    name = forms.CharField(max_length=100)
    guidelines = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="What holds for all its queries. Annotators see it above a query’s own. Markdown "
        "works here too.",
    )
    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.all(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Annotators",
        help_text="Only these see its queries. If none is chosen, all annotators do.",
    )

    def __init__(self, *args: Any, benchmark: Benchmark | None = None, **kwargs: Any) -> None:
        if benchmark is not None:
            people = list(benchmark.people.values_list("pk", flat=True))
            kwargs["initial"] = {
                "name": benchmark.name,
                "guidelines": benchmark.guidelines,
                "species": list(benchmark.species.values_list("pk", flat=True)),
                "people": people,
                **benchmark.settings,
            }
        super().__init__(*args, **kwargs)
        people_field = self.fields["people"]
        assert isinstance(people_field, forms.ModelMultipleChoiceField)
        may_label = Q(role=Role.ANNOTATOR, is_active=True) | Q(
            pk__in=self.initial.get("people", ())
        )
        people_field.queryset = get_user_model().objects.filter(may_label).order_by("username")
        for name, field in setting_fields().items():
            self.fields[name] = field

    @property
    def settings(self) -> list[forms.BoundField]:
        """The fields of settings."""
        return [self[name] for name in setting_fields()]

    @property
    def chosen(self) -> dict[str, Any]:
        """The fields of `benchmarks.benchmark_save`, of a valid form."""
        names = ("name", "guidelines", "species", "people")
        return {name: self.cleaned_data[name] for name in names} | {
            "settings": {name: self.cleaned_data[name] for name in setting_fields()}
        }


class QueryImportForm(forms.Form):
    """An uploaded CSV of queries; its name only tells the split, and names no file on disk."""

    file = forms.FileField(label="CSV file", required=False)
    kept = forms.CharField(required=False, widget=forms.HiddenInput)
    """The name and content of a file that was checked, signed."""
    split = forms.ChoiceField(
        required=False,
        choices=[("", "As the file name says"), *Query.Split.choices],
        help_text="INQUIRE’s files end in _val.csv and _test.csv.",
    )
    benchmark = forms.ModelChoiceField(Benchmark.objects.order_by("name"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if Benchmark.objects.count() < 2:
            del self.fields["benchmark"]

    def clean(self) -> dict[str, Any]:
        """Have `upload`, the (name, content) of the file that came now or was kept."""
        data = super().clean() or {}
        if file := data.get("file"):
            data["upload"] = file.name, file.read(LARGEST_UPLOAD + 1)
        elif data.get("kept"):
            try:
                name, content = signing.loads(data["kept"], salt=_KEPT)
            except signing.BadSignature:
                raise forms.ValidationError("Choose the file once more.") from None
            data["upload"] = name, content.encode()
        else:
            self.add_error("file", "Choose a file.")
        return data

    @staticmethod
    def keep(name: str, content: bytes) -> str:
        """What `kept` is for a file whose content was found to be UTF-8."""
        return signing.dumps([name, content.decode()], salt=_KEPT, compress=True)


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


class TeamForm(forms.Form):
    """Who labels a query."""

    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.all(),
        required=False,
        label="Assigned",
        widget=forms.CheckboxSelectMultiple,
    )
    wanted = forms.IntegerField(
        min_value=0,
        max_value=MOST_WANTED,
        label="People wanted",
        help_text="How many label the query, each the whole list; 0 means whoever begins.",
    )
    assigned_only = forms.BooleanField(required=False, label="Only those assigned see and label it")

    def __init__(
        self, data: Any = None, *, parts: Iterable[Assignment] = (), initial: Any = None
    ) -> None:
        chosen = [part.annotator_id for part in parts if part.assigned_at and not part.paused_at]
        super().__init__(data, initial={"people": chosen, **(initial or {})}, auto_id="team-%s")


PART_ACTIONS: Final = ("pause", "resume", "hand over", "send back", "send back for checks")


class PartForm(forms.Form):
    """What to do with one person's part in a query."""

    action = forms.ChoiceField(choices=[(name, name) for name in PART_ACTIONS])
    person = forms.ModelChoiceField(get_user_model().objects.all())
    to = forms.ModelChoiceField(get_user_model().objects.all(), required=False)
    note = forms.CharField(required=False, max_length=5000)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("action") == "hand over" and not cleaned.get("to"):
            self.add_error("to", "Choose who takes it over.")
        # Of these only what the action takes.
        takes = {"hand over": "to", "send back": "note"}.get(cleaned.get("action", ""))
        return {name: cleaned.get(name) for name in ("action", "person", takes) if name}
