"""What a service refuses, on a page: in a message, or at the fields of a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import HttpRequest

from core.errors import FileRefused, Invalid, Refused


@contextmanager
def refusal_in_message(request: HttpRequest) -> Iterator[None]:
    """Leave the block at a refusal, which the next page shows as a message."""
    try:
        yield
    except Refused as error:
        messages.error(request, str(error))
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))


@contextmanager
def refusal_in_form(form: BaseForm) -> Iterator[None]:
    """Leave the block at a refusal, which the form shows at its fields, or above them."""
    try:
        yield
    except (Refused, ValidationError) as error:
        for name, texts in _by_field(error).items():
            form.add_error(name if name in form.fields else None, list(texts))


def _by_field(error: Refused | ValidationError) -> Mapping[str, Sequence[str]]:
    if isinstance(error, Invalid) and not isinstance(error, FileRefused):
        return error.by_field
    if isinstance(error, ValidationError):
        return error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
    return {"file" if isinstance(error, FileRefused) else "": [str(error)]}
