"""How a query's rule for handing in stands."""

from __future__ import annotations

from functools import cache

from labeling.audits.bounds import meets_target, recall_at_least
from labeling.audits.selectors import audit_state
from labeling.candidates.rules import Certified, Evidence, HandInState, not_certified
from labeling.candidates.stopping import StopState
from labeling.judging.progress import hand_in_rule
from labeling.queries.models import Query


def hand_in_state(query: Query, stop: StopState) -> HandInState:
    """The query's rule by this state of its current list, one person's or the consensus, and by its
    audits, which are the query's. The SQL queries of `audit_state` where the rule is a certificate,
    else none.
    """
    certified = _certified(query) if query.current_list and query.current_list.ready else None
    confidence = query.benchmark.setting("CERTIFICATE_CONFIDENCE")
    return hand_in_rule(query).state(Evidence(stop, certified or not_certified, confidence))


def _certified(query: Query) -> Certified:
    audits = cache(lambda: audit_state(query))

    def certified(recall: float, confidence: float) -> tuple[bool, float | None]:
        found, rounds = audits().found, audits().rounds
        met = meets_target(rounds, found=found, target=recall, confidence=confidence)
        return met, recall_at_least(rounds, found=found, confidence=confidence)

    return certified
