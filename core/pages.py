"""What a service refuses, on a page: in a message, or at the fields of a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import HttpRequest

from core.errors import FileRefused, Invalid, Refused


def refusal_in_message(request: HttpRequest) -> AbstractContextManager[Any, bool]:
    """Leave the block at a refusal, which the next page shows as a message."""

    def show(error: Refused | ValidationError) -> None:
        text = " ".join(error.messages) if isinstance(error, ValidationError) else str(error)
        messages.error(request, text)

    return _Shown(show)


def refusal_in_form(form: BaseForm) -> AbstractContextManager[Any, bool]:
    """Leave the block at a refusal, which the form shows at its fields, or above them."""

    def show(error: Refused | ValidationError) -> None:
        for name, texts in _by_field(error).items():
            form.add_error(name if name in form.fields else None, list(texts))

    return _Shown(show)


class _Shown(AbstractContextManager[Any, bool]):
    """Unlike a generator's context, typed as one after whose block the code goes on."""

    def __init__(self, show: Callable[[Refused | ValidationError], None]) -> None:
        self.show = show

    def __exit__(self, _kind: object, error: object, _traceback: object) -> bool:
        if not isinstance(error, Refused | ValidationError):
            return False
        self.show(error)
        return True


def _by_field(error: Refused | ValidationError) -> Mapping[str, Sequence[str]]:
    if isinstance(error, Invalid) and not isinstance(error, FileRefused):
        return error.by_field
    if isinstance(error, ValidationError):
        return error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
    return {"file" if isinstance(error, FileRefused) else "": [str(error)]}
