"""A limit on uploads that is checked before anything of them is stored."""

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler

#: What a form may hold besides its file, and what lies around it.
REST_OF_THE_FORM = 1024 * 1024


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
