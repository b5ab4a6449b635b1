"""What people judge blindly: images that the server shows in a secret order, without what is known
of them. This module says which images wait and for whom; `labeling.blind` draws and shows them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from labeling.judging.models import BlindItem, Judgment
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Query
from retrieval.flags.selectors import is_withdrawn

_OPEN, _SUBMITTED, _COMPLETE = Query.State.OPEN, Query.State.SUBMITTED, Query.State.COMPLETE


@dataclass(frozen=True, slots=True)
class BlindKind:
    """Why images are judged blindly, in which states of a query, and what pages say of it."""

    name: str
    """In addresses, and of `BlindItem.kind`."""
    source: JudgmentSource
    """With which they are judged."""
    offered_in: tuple[str, ...]
    """In which states of a query they are shown."""
    visible_in: tuple[str, ...]
    """In which of these a query exists for all annotators while any waits for anybody."""
    title: str
    tab: str
    """What the page's panel is called."""
    about: str
    """What the panel says."""
    end: tuple[str, str]
    """The title and the text when none is left."""
    waiting: str
    """What the dashboard says of so many images."""
    left_open: str = ""
    """What a completion says that it leaves open, of `images` that `wait`; empty where they are
    judged after it too."""

    def judged_in(self, state: str) -> bool:
        """Whether a query of this state takes judgments of what was shown: one that is reopened
        too.
        """
        return state in (*self.offered_in, _OPEN)


RELEASE_AUDIT: Final = BlindKind(
    "release-audit",
    JudgmentSource.AUDIT,
    offered_in=(_OPEN, _SUBMITTED),
    visible_in=(_SUBMITTED,),
    title="Audit",
    tab="Audit",
    about="For the release’s certificate: images drawn at random from those that nobody had "
    "judged, and some whose label is known. Judge each by itself; if you can’t tell, mark it "
    "unsure.",
    end=("Nothing left to audit", "No more images of this query wait for you in the audit."),
    waiting="left to audit",
    left_open="{images} of the release's audit left to judge; until then each counts as relevant.",
)
SECOND_OPINIONS: Final = BlindKind(
    "second-opinions",
    JudgmentSource.SECOND,
    offered_in=(_SUBMITTED,),
    visible_in=(_SUBMITTED,),
    title="Second opinions",
    tab="Opinions",
    about="Images that others have judged, in random order. What they said isn’t shown: "
    "judge each by itself; if you can’t tell, mark it unsure.",
    end=("No second opinions left", "No more images of this query wait for your opinion."),
    waiting="left for a second opinion",
    left_open="{images} {wait} for a second opinion.",
)
REQUESTED: Final = BlindKind(
    "requested",
    JudgmentSource.RUN,
    offered_in=(_OPEN, _SUBMITTED, _COMPLETE),
    visible_in=(_OPEN, _SUBMITTED, _COMPLETE),
    title="Images of runs",
    tab="Images",
    about="Images that a run ranks high and nobody has judged, in random order. Which run isn’t "
    "shown: judge each by itself; if you can’t tell, mark it unsure.",
    end=("No images of runs left", "No more images that runs request wait for you here."),
    waiting="of runs left to judge",
)
#: A purposive choice, which no estimate counts: `OUTSIDE_LIST` keeps it out of streaks, second
#: opinions and agreement pass it over, and to audits it is as any other judgment outside them. Its
#: name is in addresses that annotators see, so it says nothing of who chose.
PICKED: Final = BlindKind(
    "further-images",
    JudgmentSource.PICKED,
    offered_in=(_OPEN, _SUBMITTED, _COMPLETE),
    visible_in=(_OPEN, _SUBMITTED, _COMPLETE),
    title="Further images",
    tab="Images",
    about="Images that nobody has judged, in random order. Judge each by itself; if you can’t "
    "tell, mark it unsure.",
    end=("No further images left", "No further images of this query wait for you here."),
    waiting="waiting to be judged",
)

BLIND_KINDS: list[BlindKind] = [RELEASE_AUDIT, SECOND_OPINIONS, REQUESTED, PICKED]
"""A registry: extras append theirs."""


def waiting_for_anybody() -> QuerySet[BlindItem]:
    """What no one person is to judge, and nobody has but whom it isn't for; without withdrawn
    images. Of any query, in any state.
    """
    return BlindItem.objects.filter(_undecided(), ~is_withdrawn("image"))


def waiting_for(user: Any) -> QuerySet[BlindItem]:
    """The items of `waiting_for_anybody` that the person may judge, and those for them alone that
    they haven't judged, unless they were used up.
    """
    own = Q(~Exists(votes_on_item().filter(annotator=user)), only_for=user, used_up_at=None)
    return BlindItem.objects.filter(_undecided() & ~Q(not_for=user) | own, ~is_withdrawn("image"))


def blind_to(user: Any) -> QuerySet[BlindItem]:
    """The items of `waiting_for` whose labels the person doesn't see before judging them: until
    their query is decided, and afterwards those that are still judged.
    """
    goes_on = Q(query__state__in=(_OPEN, _SUBMITTED))
    after = [kind.name for kind in BLIND_KINDS if kind.judged_in(_COMPLETE)]
    return waiting_for(user).filter(goes_on | Q(kind__in=after))


def offered_to(user: Any) -> Q:
    """The condition that an item is, or was, the person's to judge too."""
    return (Q(only_for=None) | Q(only_for=user)) & ~Q(not_for=user)


def votes_on_item() -> QuerySet[Judgment]:
    """The judgments of the query and image of the row that a condition is on."""
    return Judgment.objects.filter(query=OuterRef("query"), image=OuterRef("image"))


def _undecided() -> Q:
    # No user has the id 0.
    others = votes_on_item().exclude(annotator=Coalesce(OuterRef("not_for"), 0))
    return Q(~Exists(others), only_for=None)
