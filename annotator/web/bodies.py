"""Bodies of requests that are refused: JSON that can't be stored or is nested beyond reason, and
forms that are too large.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from rest_framework import parsers
from rest_framework.exceptions import ParseError, ValidationError

NUL: Final = "A NUL character is no text."
#: What a form may hold besides its file, and what lies around it.
REST_OF_THE_FORM: Final = 1024 * 1024


class JSONParser(parsers.JSONParser):
    """Strict JSON whose strings can be stored and sent back.

    JSON may escape half of a surrogate pair, which neither UTF-8 nor PostgreSQL holds, and NUL,
    which PostgreSQL doesn't hold. Raises ParseError or ValidationError (400).
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
            text = json.dumps(data, ensure_ascii=False)
            text.encode()
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        except UnicodeEncodeError:
            raise ParseError("The JSON holds half of a surrogate pair, which is no text.") from None
        if r"\u0000" in text and (wrong := dict.fromkeys(with_nul(data), NUL)):
            raise ValidationError(wrong)
        return data


def with_nul(value: Any, path: str = "") -> Iterator[str]:
    """The dotted paths of texts and names in which there is a NUL character."""
    if isinstance(value, str) and "\0" in value:
        yield path
    elif isinstance(value, dict):
        for name, member in value.items():
            inner = f"{path}.{name}".strip(".")
            yield from with_nul(name, path)
            yield from with_nul(member, inner)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from with_nul(item, f"{path}.{position}".strip("."))


class SizeLimit(FileUploadHandler):
    """Refuses a form by its length, before the other handlers write its files to the disk.

    Django limits the fields of a form, and not its files.
    """

    def handle_raw_input(
        self,
        input_data: Any,
        META: dict[str, Any],
        content_length: int,
        boundary: Any,
        encoding: str | None = None,
    ) -> None:
        """Raises RequestDataTooBig (413 of the API, 400 of a page)."""
        if content_length > settings.RUN_MAX_BYTES + REST_OF_THE_FORM:
            raise RequestDataTooBig("The form is larger than RUN_MAX_BYTES and its fields allow.")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        """Hand the data to the next handler."""
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Leave the file to the next handler."""
