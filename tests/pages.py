"""Pages as tests read them: what they say, however their templates are laid out."""

from __future__ import annotations

import re
from typing import Any, Final

from django.test import Client

#: White space is shown neither at the edges of these nor beside them.
_BLOCKS: Final = (
    "html|head|title|meta|link|script|body|header|main|nav|aside|section|article|div|form|fieldset|"
    "h[1-6]|p|ul|ol|li|dl|dt|dd|table|caption|thead|tbody|tr|th|td|details|summary|figure|"
    "figcaption|dialog|label|select|option|button|progress|br"
)
_BLOCK: Final = re.compile(rf"\s*(</?(?:{_BLOCKS})\b[^<>]*>)\s*")
_TAG: Final = re.compile(r"<[^<>]*>")
#: Their white space is what people wrote.
_VERBATIM: Final = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)


def laid_flat(page: str) -> str:
    """A page without the white space that only lays out its source."""
    parts = _VERBATIM.split(page)
    # Each match is followed by its element's name.
    flat = [_flat(part) if n % 3 == 0 else part for n, part in enumerate(parts) if n % 3 != 2]
    return "".join(flat)


def _flat(part: str) -> str:
    in_tags = _TAG.sub(lambda tag: re.sub(r"\s+>$", ">", re.sub(r"\s+", " ", tag[0])), part)
    return _BLOCK.sub(r"\1", re.sub(r"\s+", " ", in_tags))


class Browser(Client):
    """Django's client, whose pages are laid flat."""

    def request(self, **request: Any) -> Any:
        """The answer to a request."""
        answer = super().request(**request)
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if is_page and not answer.streaming and "Content-Disposition" not in answer:
            answer.content = laid_flat(answer.content.decode()).encode()
        return answer
