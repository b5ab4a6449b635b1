"""How a query's rule for handing in stands."""

from __future__ import annotations

from functools import cache
from typing import Any

from labeling.audits.selectors import audit_state
from labeling.candidates.rules import Certified, Evidence, HandInState, not_certified
from labeling.candidates.stopping import StopState
from labeling.certificates.bounds import meets_target, recall_at_least
from labeling.judging.progress import hand_in_rule
from labeling.queries.models import Query


def hand_in_state(query: Query, stop: StopState, annotator: Any = None) -> HandInState:
    """The query's rule by this state of its current list, one person's or the consensus, and by its
    audits, as `audit_state` counts them. The SQL queries of that where the rule is a certificate,
    else none.
    """
    ready = query.current_list and query.current_list.ready
    certified = _certified(query, annotator) if ready else None
    confidence = query.benchmark.setting("CERTIFICATE_CONFIDENCE")
    return hand_in_rule(query).state(Evidence(stop, certified or not_certified, confidence))


def _certified(query: Query, annotator: Any) -> Certified:
    audits = cache(lambda: audit_state(query, annotator))

    def certified(recall: float, confidence: float) -> tuple[bool, float | None]:
        found, rounds = audits().found, audits().rounds
        met = meets_target(rounds, found=found, target=recall, confidence=confidence)
        return met, recall_at_least(rounds, found=found, confidence=confidence)

    return certified
