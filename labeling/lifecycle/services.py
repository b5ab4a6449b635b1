"""Creating, changing and deleting queries, and changing their states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, Unpack

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max, ProtectedError, Q

from core.access import Role, at_least, role_of
from core.errors import Conflict
from core.locks import lock_key, transaction_lock
from labeling.audits.services import draw_key_ensure
from labeling.blind.opinions import opinion_key_ensure, opinions_draw
from labeling.blind.release_audits import release_audit_ensure
from labeling.candidates.rules import parse_rule
from labeling.candidates.selectors import filter_species_ids, models_in_use
from labeling.candidates.services import list_ensure, lock_query
from labeling.judging.parts import hand_ins_missing
from labeling.lifecycle.assignments import (
    assignment_hand_in,
    assignment_resume,
    parts_resume,
    still_labeling,
)
from labeling.lifecycle.mail import mail_assigned
from labeling.lifecycle.signals import query_submitted
from labeling.queries.categories import ICONIC_GROUPS
from labeling.queries.models import Benchmark, Query, QueryEdit, QueryTransition
from labeling.queries.transitions import TransitionIncomplete, TransitionRefused, check_transition
from labeling.review.selectors import left_open
from retrieval.corpus.counts import image_count
from retrieval.corpus.models import Species
from retrieval.embedding.counts import embedded_counts
from retrieval.embedding.models import EmbeddingModel

#: For a search that becomes a query; the admin gives it its own category afterwards.
CATEGORY_OF_SEARCHES = "Miscellaneous Context"


class QueryHasJudgments(Conflict):
    """A query with judgments can be neither deleted nor renumbered; it can be rejected."""


class QueryFields(TypedDict, total=False):
    """What can be written of a query; a member that is left out stays as it is, or as the model has
    it for a new one.
    """

    query_id: int | None
    """None for the next free one."""
    text: str
    """Kept verbatim."""
    category: str
    iconic_group: str
    split: str
    """Empty: to be drawn (`splitting`); until then a new query is of the test split, and others
    stay as they are."""
    scientific_terms: bool
    benchmark: Benchmark
    guidelines: str
    order: str
    hand_in_rule: str
    grades: str
    species: Iterable[Species]


#: Forms, serializers, imports and the history take a query's fields from here.
QUERY_FIELDS: Final = tuple(QueryFields.__annotations__)


@transaction.atomic
def query_create(
    *, created_by: Any, imported: bool = False, **fields: Unpack[QueryFields]
) -> Query:
    """Write a query; it starts as a draft, by default of the first benchmark. `imported`: an import
    brings it, with its number.

    Raises ValidationError with the fields named, and FilterEmpty.
    """
    lock_query_ids()
    if fields.get("query_id") is None:
        fields["query_id"] = _next_query_id()
    query = Query(created_by=created_by, imported=imported, split=Query.Split.TEST)
    _write(query, fields)
    filter_species_ids(query)
    return query


@transaction.atomic
def query_create_in_state(*, to_state: str, created_by: Any, **fields: Any) -> Query:
    """Write a query with the members of QueryFields and pass it into a state, or do neither."""
    query = query_create(created_by=created_by, **fields)
    return query_transition(query=query, to_state=to_state, by=created_by)


@transaction.atomic
def query_update(
    *, query: Query, by: Any, imported: bool = False, **changes: Unpack[QueryFields]
) -> Query:
    """Change a query's fields, with the values before and after in its history; an open query whose
    text or filter changes gets a new list and keeps its judgments.

    Raises ValidationError with the fields named, Conflict for a new text or filter of a query that
    is submitted or complete (reopen it first), FilterEmpty, and QueryHasJudgments for a new query
    id of one that was judged for, for a benchmark that changes its filter, or for other grades of
    one that has some.
    """
    if "query_id" in changes:
        lock_query_ids()
    query = lock_query(query)
    if changes.get("query_id", query.query_id) != query.query_id and (
        query.judgment_events.exists()
    ):
        raise QueryHasJudgments(
            f"Query {query.query_id} has judgments, so its number can't change: files refer to it."
        )
    if changes.get("grades", query.grades) != query.grades and (
        query.judgments.filter(grade__isnull=False).exists()
    ):
        raise QueryHasJudgments(
            f"Query {query.query_id} has graded judgments, and what they mean can't change."
        )
    before, filter_before = query_facts(query, changes), (query.text, filter_species_ids(query))
    benchmark_before = query.benchmark_id
    query.imported = imported or query.imported
    _write(query, changes)
    filter_after = (query.text, filter_species_ids(query))
    if filter_before[1] != filter_after[1] and query.benchmark_id != benchmark_before:
        refuse_judged(query)
    if filter_before != filter_after:
        if query.state in (Query.State.SUBMITTED, Query.State.COMPLETE):
            raise Conflict(
                f"The query is {query.get_state_display().lower()}: its text and species filter "
                "are what was labeled. Reopen it to change them."
            )
        if query.state == Query.State.OPEN:
            list_ensure(query=query, by=by)
    if edits := facts_changed(before, query_facts(query, changes)):
        QueryEdit.objects.create(query=query, changes=edits, made_by=by)
    return query


def query_facts(query: Query, names: Iterable[str]) -> dict[str, Any]:
    """The values of these of a query's fields as its history keeps them."""
    values = {name: getattr(query, name) for name in names}
    if "species" in values:
        values["species"] = query.species.all()
    return facts_of(values)


def facts_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a query's fields with names where they hold rows."""
    facts = dict(fields)
    if "species" in facts:
        facts["species"] = sorted(species.scientific_name for species in facts["species"])
    if "benchmark" in facts:
        facts["benchmark"] = facts["benchmark"].name
    return facts


def facts_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[Any]]:
    """[field, value before, value after] of each that differs."""
    return [[name, before[name], after[name]] for name in after if before[name] != after[name]]


def refuse_judged(query: Query) -> None:
    """Refuse another filter by a benchmark: what was judged is of the images of the present one."""
    if query.judgment_events.exists():
        raise QueryHasJudgments(
            f"Query {query.query_id} has judgments, and the species filter of the benchmark would "
            "change its candidates."
        )


@transaction.atomic
def query_delete(*, query: Query) -> None:
    """Delete a query with its lists. Raises QueryHasJudgments if anybody ever judged for it.

    Only queries with judgments are completed, the history of judgments is never removed, not even
    with the last of them taken back, and a query with such history keeps its query id. So whatever
    was released can't be deleted, and its query id can't come to mean another query.
    """
    query = lock_query(query)
    try:
        query.delete()
    except ProtectedError:
        raise QueryHasJudgments(
            f"Query {query.query_id} has judgments, so it can't be deleted; reject it instead."
        ) from None


def query_deletable(query: Query) -> bool:
    """Whether nobody ever judged for it, so that `query_delete` deletes it."""
    return not (query.judgments.exists() or query.judgment_events.exists())


@transaction.atomic
def query_transition(
    *,
    query: Query,
    to_state: str,
    by: Any,
    reason: str = "",
    note: str = "",
    give_up: str = "",
) -> Query:
    """Pass a query into another state and keep who did it, when and why; into its own state changes
    nothing.

    Opening requests a candidate list where none fits, makes the keys of the draws and of the second
    opinions, and resumes everybody's part; it is refused where there is nothing to label
    (`_check_corpus`). An annotator's "submitted" hands in their own part (`lifecycle.assignments`):
    the query is submitted with the last part, once as many as it asks for are handed in, and open
    until then; their "open" of an open query resumes it. A reviewer's "submitted" is the query's,
    whoever still labels. With `give_up`, a code of Query.RejectReason, anybody hands in for a
    reviewer to reject the query; only the reason "other" needs a note then. Where the query isn't
    given up, its audit for the next release is drawn at the first of these
    (`blind.release_audits`), and once it is submitted, what gets a second opinion
    (`blind.opinions`).

    A query that nobody has judged for can't be completed, and one that leaves something open
    (`review.selectors.left_open`) only with a note that says why; the query keeps both until it is
    opened again. Raises TransitionRefused or a subclass.
    """
    query = lock_query(query)
    if to_state not in Query.State.values:
        raise TransitionIncomplete(
            "state", f"{to_state!r} is no state; known are {', '.join(Query.State.values)}."
        )
    if to_state == query.state:
        if to_state == Query.State.OPEN:
            assignment_resume(query=query, annotator=by)
        return query
    check_transition(
        role=role_of(by),
        from_state=query.state,
        to_state=to_state,
        reason=reason,
        give_up=give_up,
    )
    _check_reason("reject_reason", reason)
    _check_reason("give_up", give_up)
    _check_plain("note", note)
    if give_up == Query.RejectReason.OTHER and not note.strip():
        raise TransitionIncomplete("note", "A note that says why is needed.")
    handed_in = to_state == Query.State.SUBMITTED
    if handed_in and (give_up or not at_least(by, Role.REVIEWER)):
        if not assignment_hand_in(query=query, annotator=by, reason=give_up, note=note):
            return query
        waits = still_labeling(query) or hand_ins_missing(query)
        if waits and not at_least(by, Role.REVIEWER):
            to_state = query.state
    if handed_in and not give_up:
        release_audit_ensure(query=query, by=by)
    if to_state == Query.State.OPEN and to_state != query.state:
        _check_corpus(query)
    unmet = _check_complete(query, note) if to_state == Query.State.COMPLETE else []
    QueryTransition.objects.create(
        query=query,
        from_state=query.state,
        to_state=to_state,
        reason=reason or give_up,
        note=note,
        made_by=by,
    )
    if to_state == query.state:
        return query
    query.state = to_state
    query.reject_reason = reason
    query.reject_note = note if to_state == Query.State.REJECTED else ""
    query.left_open = " ".join(unmet)
    query.completion_reason = note if unmet else ""
    decided = ["state", "reject_reason", "reject_note", "left_open", "completion_reason"]
    query.save(update_fields=[*decided, "updated_at"])
    if to_state == Query.State.OPEN:
        parts_resume(query=query)
        draw_key_ensure(query=query)
        opinion_key_ensure(query=query)
        list_ensure(query=query, by=by)
        assigned = Q(assigned_at__isnull=False, paused_at=None)
        mail_assigned(query=query, people=query.assignments.filter(assigned).values("annotator"))
    elif handed_in and not give_up:
        opinions_draw(query=query)
        query_submitted.send(sender=Query, query=query)
    return query


def query_submit_if_done(*, query: Query, by: Any) -> None:
    """Submit an open query that somebody has handed in, where as many as it asks for have and
    nobody labels it any more. The caller holds its lock.
    """
    done = query.assignments.filter(handed_in_at__isnull=False)
    if query.state != Query.State.OPEN or not done.exists():
        return
    if still_labeling(query) or hand_ins_missing(query):
        return
    QueryTransition.objects.create(
        query=query, from_state=query.state, to_state=Query.State.SUBMITTED, made_by=by
    )
    query.state = Query.State.SUBMITTED
    query.save(update_fields=["state", "updated_at"])
    if done.filter(reason="").exists():
        opinions_draw(query=query)
        query_submitted.send(sender=Query, query=query)


@transaction.atomic
def query_change(
    *,
    query: Query,
    by: Any,
    fields: QueryFields,
    to_state: str | None = None,
    reason: str = "",
    note: str = "",
    give_up: str = "",
) -> Query:
    """Change fields and state together or not at all: fields first, so that opening ranks the new
    text.
    """
    if fields:
        query = query_update(query=query, by=by, **fields)
    if to_state is not None:
        query = query_transition(
            query=query, to_state=to_state, by=by, reason=reason, note=note, give_up=give_up
        )
    return query


@transaction.atomic
def query_from_search(
    *,
    text: str,
    created_by: Any,
    species: Iterable[Species] = (),
    category: str = CATEGORY_OF_SEARCHES,
    split: str = "",
) -> Query:
    """Turn a search into a draft; the same search again gives the draft that it made.

    The iconic group is that of the species where they share one. Raises ValidationError for a blank
    text.
    """
    lock_query_ids()  # two clicks make one draft
    species = list(species)
    species_ids = sorted(taxon.pk for taxon in species)
    for draft in Query.objects.filter(state=Query.State.DRAFT, text=text, created_by=created_by):
        if sorted(draft.species.values_list("pk", flat=True)) == species_ids:
            return draft
    groups = {taxon.iconic_group for taxon in species}
    group = groups.pop() if len(groups) == 1 else ""
    return query_create(
        text=text,
        category=category,
        split=split,
        iconic_group=group if group in ICONIC_GROUPS else "",
        species=species,
        created_by=created_by,
    )


def lock_query_ids() -> None:
    """Keep others from adding queries until the transaction ends, so that an id found free stays
    free.
    """
    transaction_lock(lock_key("query_ids"))


def _next_query_id() -> int:
    """The number after the highest; the caller holds the lock of the query ids."""
    highest: int | None = Query.objects.aggregate(highest=Max("query_id"))["highest"]
    return 1 if highest is None else highest + 1


def _write(query: Query, fields: QueryFields) -> None:
    """Give a query these fields and store it, its rule in the usual spelling. Raises
    ValidationError with the fields named.
    """
    for name in fields.keys() - {"species", "split"}:
        setattr(query, name, fields[name])  # type: ignore[literal-required]
    if "split" in fields:
        query.split_settled = bool(fields["split"])
        query.split = fields["split"] or query.split
    errors: dict[str, list[str]] = {}
    try:
        rule = query.hand_in_rule.strip()
        query.hand_in_rule = str(parse_rule(rule)) if rule else ""
    except ValueError as error:
        errors["hand_in_rule"] = [str(error)]
    try:
        query.full_clean(exclude=["benchmark", "current_list", "created_by", *errors])
    except ValidationError as error:
        errors |= error.message_dict
    if errors:
        raise ValidationError(errors)
    query.save()
    if "species" in fields:
        query.species.set(fields["species"])


def _check_plain(field: str, text: str) -> None:
    if "\0" in text:
        raise ValidationError({field: "NUL characters can't be stored."})


def _check_reason(field: str, reason: str) -> None:
    if reason and reason not in Query.RejectReason.values:
        raise TransitionIncomplete(
            field, f"{reason!r} is no reason; known are {', '.join(Query.RejectReason.values)}."
        )


def _check_corpus(query: Query) -> None:
    """Raise TransitionRefused unless the corpus has an image with an embedding of each model in
    use, and one within the query's species filter, withdrawn ones aside. At most four SQL queries,
    of counts that triggers keep.
    """
    names = models_in_use(query)
    models = EmbeddingModel.objects.in_bulk(names, field_name="name")
    embedded = embedded_counts(models.values())
    for name in names:
        if name not in models or not embedded[models[name].pk]:
            raise TransitionRefused(
                f"There are no images with embeddings of {name} to label: import and embed images "
                "first."
            )
    species_ids = filter_species_ids(query)
    if species_ids and not image_count(species_ids=species_ids):
        raise TransitionRefused(
            "There are no images of the query's species filter to label: import images of them "
            "first, or change the filter."
        )


def _check_complete(query: Query, note: str) -> list[str]:
    """What a completion of the query leaves open, in sentences, once `note` says why."""
    if not query.judgments.exists():
        raise TransitionRefused(
            "Nobody has judged for the query yet, so there is nothing to complete. "
            "Judge its candidates first, or reject it."
        )
    unmet = [point.text for point in left_open(query)]
    if unmet and not note.strip():
        raise TransitionIncomplete("note", *unmet, "Say why it is complete nevertheless.")
    return unmet
