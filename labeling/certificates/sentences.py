"""What a query's certificate says, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from labeling.certificates.bounds import AuditRound, missing_at_most, more_without_hit


def certificate_sentences(
    rounds: Sequence[AuditRound],
    *,
    found: int,
    target: float = 0.9,
    confidence: float = 0.95,
    release_draws: int | None = None,
) -> str:
    """What was found and drawn, what that bounds, and what the target still costs: "Found 30. Of
    4,500 unjudged images 300, drawn at random, were judged; none is relevant. …"

    `release_draws` is about how many of the pool's images a release's audit takes; None or 0 is
    left out. The other arguments and errors as in bounds.more_without_hit.
    """
    missing = missing_at_most(rounds, found=found, confidence=confidence)
    begin = f"Found {_number(found)}."
    if rounds[-1].drawn == rounds[-1].unjudged:
        return f"{begin} {_all_judged(missing)}"
    said = [begin, _drawn(rounds, found)]
    if any(audit_round.drawn for audit_round in rounds):
        said.append(_bound(rounds, found, missing, confidence))
    goal = f"{100 * target:g} %" if found else "that none is relevant"
    more = more_without_hit(rounds, found=found, target=target, confidence=confidence)
    if more == 0:
        return " ".join([*said, f"{goal} is certified."] if found else said)
    if more is None:
        price = f"Only judging all that are left would show {goal}"
    else:
        price = f"{_rounded(more)} more without a hit would certify {goal}"
    if release_draws and (more is None or release_draws < more):
        verb = "is" if release_draws == 1 else "are"
        price += f"; {release_draws:,} {verb} enough for the release"
    return " ".join([*said, f"{price}."])


def _all_judged(missing: int) -> str:
    if not missing:
        return "All images of this pool are judged: complete."
    return f"All images of this pool were drawn or judged; at most {missing:,} can be missing."


def _drawn(rounds: Sequence[AuditRound], found: int) -> str:
    drawn, hits = (
        sum(getattr(audit_round, name) for audit_round in rounds) for name in ("drawn", "hits")
    )
    if not drawn:
        return f"{rounds[-1].unjudged:,} images are unjudged; none is drawn yet."
    of = f"Of {rounds[0].unjudged:,} unjudged images {drawn:,}, drawn at random"
    if len(rounds) > 1:
        of += f" in {len(rounds)} rounds"
    what = "relevant" if found >= rounds[-1].least else "relevant, unsure or not judged yet"
    return f"{of}, were judged; {_number(hits)} {'is' if hits < 2 else 'are'} {what}."


def _bound(rounds: Sequence[AuditRound], found: int, missing: int, confidence: float) -> str:
    if found + missing == rounds[-1].most:
        return f"Up to {missing:,} can still be missing from this pool."
    sure = f"With {100 * confidence:g} % confidence"
    count = f"{f'at most {missing:,}' if missing else 'none'} {'is' if missing < 2 else 'are'}"
    if not found:
        return f"{sure} {count} relevant in this pool."
    recall = 100 * found // (found + missing)
    end = f": recall is at least {recall} %" if missing else ""
    return f"{sure} {count} missing from this pool{end}."


def _number(count: int) -> str:
    return f"{count:,}" if count else "none"


def _rounded(count: int) -> str:
    """With three digits, rounded up."""
    step = 10 ** max(len(str(count)) - 3, 0)
    return f"About {ceil(count / step) * step:,}" if step > 1 else str(count)
