"""What is done for queries with images that somebody selects on the images' page."""

from __future__ import annotations

from typing import Final

from core.access import Role
from retrieval.browsing.actions import Choices, ImageAction

_OPEN_QUERIES: Final = "/api/queries/?state=open&limit=20"

ACTIONS: Final = [
    ImageAction(
        name="put-before",
        title="Put before annotators",
        about="The annotators of a query judge them blindly: nobody is told where they come from.",
        role=Role.REVIEWER,
        endpoint="/api/queries/{query}/put-before/",
        queries=_OPEN_QUERIES,
    ),
    ImageAction(
        name="examples",
        title="Take as examples",
        about="They are pinned to the guidelines of a query, where its annotators see them.",
        role=Role.ADMIN,
        endpoint="/api/queries/{query}/examples/add-images/",
        queries=_OPEN_QUERIES,
        choices=Choices("relevant", "They are", [(True, "Relevant"), (False, "Not relevant")]),
        note=True,
    ),
]
