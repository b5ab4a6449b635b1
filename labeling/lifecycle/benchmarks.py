"""Writing benchmarks: what they may override, and what a change does to their queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.conf import settings as installation
from django.contrib.postgres.forms import SimpleArrayField
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError

from core.errors import Conflict
from labeling.candidates.rules import parse_rule
from labeling.candidates.selectors import filter_species_ids
from labeling.candidates.services import list_ensure, lock_query
from labeling.lifecycle.services import lock_query_ids, refuse_judged
from labeling.queries.models import Benchmark, Query
from retrieval.corpus.models import Species


def share_field(*, label: str, least: float = 0.0) -> forms.Field:
    """The field of a share below 1."""
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(min_value=least, max_value=0.999999, label=label, widget=widget)


def _count(*, label: str) -> forms.Field:
    return forms.IntegerField(min_value=0, max_value=10_000, label=label)


def _rule_check(text: str) -> None:
    try:
        parse_rule(text)
    except ValueError as error:
        raise ValidationError(str(error)) from error


SETTING_FIELDS: dict[str, Callable[[], forms.Field]] = {
    "HAND_IN_RULE": lambda: forms.CharField(
        max_length=100, validators=[_rule_check], label="Rule for handing in"
    ),
    "CERTIFICATE_RECALL": lambda: share_field(least=0.001, label="Recall to certify"),
    "CERTIFICATE_CONFIDENCE": lambda: share_field(least=0.001, label="Confidence of certificates"),
    "SECOND_OPINION_POSITIVE": lambda: share_field(label="Second opinions, share of relevant"),
    "SECOND_OPINION_NEGATIVE": lambda: share_field(label="Second opinions, share of not relevant"),
    "SECOND_OPINION_LOOKALIKE": lambda: share_field(label="Second opinions, share of look-alikes"),
    "SECOND_OPINION_BOUNDARY": lambda: _count(label="Second opinions at the boundary"),
    "SECOND_OPINION_LEAST": lambda: _count(label="Second opinions per query, at least"),
    "SECOND_OPINION_MOST": lambda: share_field(label="Second opinions per query, largest share"),
    "GOLD_EVERY": lambda: _count(label="Second opinions for each check"),
    "CHECKS_NEEDED": lambda: _count(label="Checks that tell of a part, at least"),
    "CHECKS_AT_LEAST": lambda: share_field(label="Checks answered right, smallest share"),
    "POOL_MODELS": lambda: SimpleArrayField(
        forms.CharField(max_length=300), label="Models of the candidate lists"
    ),
}
"""The settings that a benchmark may override, each with what makes the field that reads it; extras
add theirs."""


def setting_fields() -> dict[str, forms.Field]:
    """New fields of those settings; empty ones are the installation's."""
    fields = {name: make() for name, make in SETTING_FIELDS.items()}
    for name, field in fields.items():
        usual = getattr(installation, name)
        shown = ", ".join(usual) or "one model" if isinstance(usual, list) else usual
        field.required, field.help_text = False, f"Leave it empty for the installation’s: {shown}."
    return fields


def _settings_read(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is overridden. Raises ValidationError by setting."""
    fields, errors, found = setting_fields(), {}, {}
    for name, value in given.items():
        try:
            if name not in fields:
                raise ValidationError("A benchmark can't override this.")
            found[name] = fields[name].clean(value)
        except ValidationError as error:
            errors[name] = error.messages
    if errors:
        raise ValidationError(errors)
    return {name: value for name, value in found.items() if value not in (None, "", [])}


@transaction.atomic
def benchmark_save(
    *,
    benchmark: Benchmark | None = None,
    by: Any,
    name: str,
    guidelines: str = "",
    species: Iterable[Species] = (),
    people: Iterable[Any] = (),
    settings: Mapping[str, Any] | None = None,
) -> Benchmark:
    """Write a new benchmark, or all of one that is there.

    Another species filter makes new candidate lists for its open queries. Raises ValidationError
    with the fields named, Conflict for another filter once there is a release, FilterEmpty where a
    query's own filter has nothing of it, and
    QueryHasJudgments where it would change the candidates of a query that was judged for.
    """
    lock_query_ids()
    saved = benchmark or Benchmark()
    species = list(species)
    saved.name, saved.guidelines, saved.species_count = name.strip(), guidelines, len(species)
    saved.settings = _settings_read(settings or {})
    saved.full_clean()
    before: list[tuple[Query, list[int]]] = []
    if saved.pk and {one.pk for one in species} != set(saved.species.values_list("pk", flat=True)):
        if saved.releases.exists():
            raise Conflict("Releases rank the images of its filter, so it can't change any more.")
        locked = [lock_query(query) for query in saved.queries.order_by("pk")]
        before = [(query, filter_species_ids(query)) for query in locked]
    saved.save()
    saved.species.set(species)
    saved.people.set(people)
    for query, species_ids in before:
        if filter_species_ids(query) == species_ids:
            continue
        refuse_judged(query)
        if query.state == Query.State.OPEN:
            list_ensure(query=query, by=by)
    return saved


@transaction.atomic
def benchmark_delete(*, benchmark: Benchmark) -> None:
    """Delete a benchmark. Conflict: it has queries or releases, or is the only one."""
    lock_query_ids()
    others = Benchmark.objects.filter(screening=False).exclude(pk=benchmark.pk)
    if not others.exists():
        raise Conflict(f"{benchmark} is the only benchmark; it can be renamed.")
    try:
        benchmark.delete()
    except ProtectedError:
        raise Conflict(f"{benchmark} has queries or releases, so it can't be deleted.") from None
