"""When the queries will be complete, at the present pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Count
from django.utils import timezone

from core.sql import fetch_all
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import Query, QueryTransition

DAYS: Final = 14
_FAR: Final = 3650
#: Of a chart of DAYS bars.
_HEIGHT: Final = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A day in the chart; `x`, `y` and `height` are in the units of its drawing."""

    day: date
    judgments: int
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class TeamProgress:
    """How far all queries are, and how fast the team is."""

    states: list[tuple[str, str, int]]
    """State, its name and how many queries are in it; rejected ones are left out."""
    judgments_per_day: float
    completed_per_day: float
    sentence: str
    bars: list[Bar]
    """Of the last DAYS days, today the last."""

    @property
    def judgments_by_day(self) -> str:
        """How many judgments each bar stands for, in words: "3, 0, 12"."""
        return ", ".join(str(bar.judgments) for bar in self.bars)


_PER_DAY: Final = f"""
SELECT d.day::date, (SELECT count(*) FROM {JudgmentEvent._meta.db_table}
                WHERE made_at >= d.day AT TIME ZONE 'UTC'
                  AND made_at < (d.day + interval '1 day') AT TIME ZONE 'UTC')
  FROM generate_series(%s::timestamp, %s::timestamp, interval '1 day') d (day) ORDER BY 1
"""


def team_progress() -> TeamProgress:
    """The progress of all queries but screening ones; three SQL queries. Days are of UTC; a
    judgment that was changed or taken back counts with each act.
    """
    now = timezone.now()
    today = now.date()
    queries = Query.objects.filter(benchmark__screening=False)
    counts = dict(queries.order_by().values_list("state").annotate(Count("pk")))
    days = fetch_all(_PER_DAY, [today - timedelta(days=DAYS - 1), today])
    completed = (
        QueryTransition.objects.filter(
            query__in=queries,
            to_state=Query.State.COMPLETE,
            made_at__gte=now - timedelta(days=DAYS),
        ).aggregate(count=Count("query", distinct=True))
    )["count"]
    shown = (Query.State.COMPLETE, Query.State.SUBMITTED, Query.State.OPEN, Query.State.DRAFT)
    left = sum(counts.get(state, 0) for state in shown[1:])
    return TeamProgress(
        states=[(state, state.label, counts.get(state, 0)) for state in shown],
        judgments_per_day=sum(count for _, count in days) / DAYS,
        completed_per_day=completed / DAYS,
        sentence=pace_sentence(left=left, completed=completed, today=today, due=settings.DUE_DATE)
        if left or counts.get(Query.State.COMPLETE)
        else "No query has been written yet.",
        bars=_bars(days),
    )


def pace_sentence(*, left: int, completed: int, today: date, due: date | None) -> str:
    """Until when the queries that are left take, where so many were completed in the last DAYS
    days, and how that lies to the date on which they are due (None: to no date).
    """
    if not left:
        return "Every query is complete."
    queries = f"{left:,} {'query' if left == 1 else 'queries'} still to complete"
    by = f" by {_words(due, today)}" if due else ""
    if not completed:
        verb = "is" if left == 1 else "are"
        return (
            f"No query was completed in the last {DAYS} days, so nothing tells when the "
            f"{queries}{by} {verb} done."
        )
    needed = -(-left * DAYS // completed)
    pace = f"At the pace of the last {DAYS} days, {queries} take{'s' if left == 1 else ''}"
    if needed > _FAR:
        return f"{pace} more than ten years."
    end = today + timedelta(days=needed)
    apart = (end - due).days if due else 0
    days = f"{abs(apart):,} day{'' if abs(apart) == 1 else 's'}"
    lies = f", {days} after the date" if apart > 0 else f", {days} before the date"
    if due and not apart:
        lies = ", the date itself"
    return f"{pace} until {_words(end, today)}{lies if due else ''}."


def _words(day: date, today: date) -> str:
    """ "March 3", with the year where it isn't this one."""
    return f"{day:%B} {day.day}{'' if day.year == today.year else f', {day.year}'}"


def _bars(days: Sequence[tuple[date, int]]) -> list[Bar]:
    most = max(count for _, count in days) or 1
    heights = [round(_HEIGHT * count / most, 2) for _, count in days]
    return [
        Bar(day, count, x=10 * place, y=round(_HEIGHT - height, 2), height=height)
        for place, ((day, count), height) in enumerate(zip(days, heights, strict=True))
    ]
