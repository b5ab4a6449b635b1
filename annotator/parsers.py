"""JSON bodies of the API, refused where they are no text or nested beyond reason."""

import json
from collections.abc import Mapping
from typing import Any

from rest_framework import parsers
from rest_framework.exceptions import ParseError


class JSONParser(parsers.JSONParser):
    """Strict JSON whose strings can be stored and sent back.

    JSON may escape half of a surrogate pair, which neither UTF-8 nor PostgreSQL holds.
    Raises ParseError (400).
    """

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The body's value."""
        try:
            data = super().parse(stream, media_type, parser_context)
            json.dumps(data, ensure_ascii=False).encode()
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        except UnicodeEncodeError:
            raise ParseError("The JSON holds half of a surrogate pair, which is no text.") from None
        return data
