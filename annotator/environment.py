"""One typed reader of environment variables, so that a wrong value is named at start-up."""

import os
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

MODEL_FILE = "embedding_model"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads values from `variables`; an unset or blank variable means the default.

    Raises ImproperlyConfigured, naming the variable and what it may hold, for a wrong value.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding blanks."""
        return self._variables.get(name, "").strip() or default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """true/false, also written 1/0, yes/no, on/off in any case."""
        value = self.text(name).lower()
        if not value:
            return default
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise ImproperlyConfigured(f"{name}={value!r}: write true or false.")

    def number(self, name: str, default: int, *, minimum: int, maximum: int = 2**31 - 1) -> int:
        """A whole number between `minimum` and `maximum`, both allowed."""
        value = self.text(name)
        if not value:
            return default
        try:
            number = int(value)
        except ValueError:
            raise ImproperlyConfigured(f"{name}={value!r}: write a whole number.") from None
        if not minimum <= number <= maximum:
            raise ImproperlyConfigured(
                f"{name}={number}: write a number from {minimum} to {maximum}."
            )
        return number

    def words(self, name: str, default: list[str]) -> list[str]:
        """A comma-separated list; blank items are dropped."""
        words = [word.strip() for word in self.text(name).split(",")]
        return [word for word in words if word] or default

    def addresses(self, name: str) -> dict[str, str]:
        """Named base addresses, written "local=http://127.0.0.1:8001/v1,other=https://…"."""
        found: dict[str, str] = {}
        for word in self.words(name, []):
            key, _, address = (part.strip() for part in word.partition("="))
            if not key or key in found or not address.startswith(("http://", "https://")):
                raise ImproperlyConfigured(
                    f"{name}: {word!r} is not a name of its own with an address, such as "
                    "local=http://127.0.0.1:8001/v1."
                )
            found[key] = address
        return found


def chosen_model(var_dir: Path) -> str:
    """The embedding model that `demo` chose for this state folder, or an empty string.

    It makes every other command on the folder rank with the model that its images have.
    """
    path = var_dir / MODEL_FILE
    return path.read_text().strip() if path.is_file() else ""


def choose_model(var_dir: Path, name: str) -> None:
    """Keep `name` as the model of this state folder, for commands that name none."""
    (var_dir / MODEL_FILE).write_text(f"{name}\n")
