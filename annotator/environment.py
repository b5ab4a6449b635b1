"""One typed reader of environment variables, so that a wrong value is named at start-up."""

import os
import secrets
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

MODEL_FILE = "embedding_model"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
PERIODS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


class BadSetting(SystemExit):
    """A wrong value of a variable. Its text, one sentence, is all that the process says before it
    ends with status 1, whichever program read the settings: manage.py, celery or gunicorn.
    """


class Environment:
    """Reads values from `variables`; an unset or blank variable means the default.

    Raises BadSetting, naming the variable and what it may hold, for a wrong value.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables
        self.read: dict[str, bool] = {}
        """The variables that were read, and whether each is set."""

    def text(self, name: str, default: str = "") -> str:
        """The value without surrounding blanks; `NAME_FILE` names a file that holds it, as Docker's
        and Kubernetes' secrets do.
        """
        value = self._variables.get(name, "").strip()
        path = self._variables.get(f"{name}_FILE", "").strip()
        self.read[name] = bool(value or path)
        if not path:
            return value or default
        if value:
            raise BadSetting(f"{name} and {name}_FILE are both set: remove one of them.")
        try:
            return Path(path).read_text(encoding="utf-8").strip() or default
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it isn't UTF-8"
            raise BadSetting(f"{name}_FILE={path} can't be read: {reason}.") from None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """true/false, also written 1/0, yes/no, on/off in any case."""
        value = self.text(name).lower()
        if not value:
            return default
        if value in TRUE:
            return True
        if value in FALSE:
            return False
        raise BadSetting(f"{name}={value!r}: write true or false.")

    def number(self, name: str, default: int, *, minimum: int, maximum: int = 2**31 - 1) -> int:
        """A whole number between `minimum` and `maximum`, both allowed."""
        value = self.text(name)
        if not value:
            return default
        try:
            number = int(value)
        except ValueError:
            raise BadSetting(f"{name}={value!r}: write a whole number.") from None
        if not minimum <= number <= maximum:
            raise BadSetting(f"{name}={number}: write a number from {minimum} to {maximum}.")
        return number

    def day(self, name: str) -> date | None:
        """A date as in 2026-03-31; None where there is none."""
        value = self.text(name)
        try:
            return date.fromisoformat(value) if value else None
        except ValueError:
            raise BadSetting(f"{name}={value!r}: write a date such as 2026-03-31.") from None

    def share(self, name: str, default: float, *, zero: bool = False) -> float:
        """A number between 0 and 1, both excluded; with `zero` 0 is allowed."""
        value = self.text(name)
        if not value:
            return default
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not (0 < share < 1 or (zero and share == 0)):
            least = "0 or a number" if zero else "a number"
            raise BadSetting(f"{name}={value!r}: write {least} between 0 and 1.")
        return share

    def rate(self, name: str) -> tuple[int, int] | None:
        """Written "6000/minute": how many at most, in how many seconds; None for no value."""
        value = self.text(name)
        if not value:
            return None
        number, _, period = (part.strip() for part in value.partition("/"))
        if not number.isdecimal() or not 0 < int(number) < 2**31 or period not in PERIODS:
            raise BadSetting(f"{name}={value!r}: write a rate such as 6000/minute.")
        return int(number), PERIODS[period]

    def limits(self, name: str, default: str, count: int) -> list[tuple[int, int]]:
        """So many limits, written "10/15, 30/15": how many, within how many minutes."""
        value = self.text(name, default)
        limits = [one.split("/") for one in value.replace(" ", "").split(",")]
        whole = all(part.isdecimal() and 0 < int(part) < 10**6 for one in limits for part in one)
        if not whole or [len(one) for one in limits] != [2] * count:
            raise BadSetting(f"{name}={value!r}: write {count} limits such as {default}.")
        return [(int(number), int(minutes)) for number, minutes in limits]

    def words(self, name: str, default: list[str]) -> list[str]:
        """A comma-separated list; blank items are dropped."""
        words = [word.strip() for word in self.text(name).split(",")]
        return [word for word in words if word] or default

    def chosen(self, name: str, choices: Sequence[str]) -> list[str]:
        """Some of a few words, separated by commas; all where the variable is unset, none where it
        is blank."""
        self.read[name] = name in self._variables
        if name not in self._variables:
            return list(choices)
        words = self.words(name, [])
        if unknown := [word for word in words if word not in choices]:
            raise BadSetting(f"{name}: {unknown[0]!r} is none of {', '.join(choices)}.")
        return [choice for choice in choices if choice in words]

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """One of a few words, written in any case."""
        value = self.text(name, default)
        for choice in choices:
            if choice.lower() == value.lower():
                return choice
        raise BadSetting(f"{name}={value!r}: write one of {', '.join(choices)}.")

    def address(self, name: str, default: str, *, schemes: Collection[str], example: str) -> str:
        """An address that begins with one of `schemes`. An error doesn't repeat it, since it may
        hold a password.
        """
        value = self.text(name, default)
        if not value:
            return value
        try:
            parts = urlsplit(value)
            right = parts.scheme in schemes and (parts.port is None or parts.port > 0)
        except ValueError:
            right = False
        if not right:
            raise BadSetting(f"{name}: write an address such as {example}.")
        return value

    def bucket(self, name: str) -> str:
        """An S3 bucket with a prefix of its keys, or an empty text."""
        example = "s3://bucket/prefix"
        value = self.address(name, "", schemes=("s3",), example=example).rstrip("/")
        place = urlsplit(value)
        if value and (not place.netloc or place.query or ".." in place.path.split("/")):
            raise BadSetting(f"{name}: write an address such as {example}.")
        return value

    def database(self, name: str) -> dict[str, Any]:
        """Django's settings of a PostgreSQL by its address, or an empty dict."""
        example = "postgres://user:password@host/name"
        schemes = ("postgres", "postgresql")
        address = self.address(name, "", schemes=schemes, example=example)
        found = dict(dj_database_url.parse(address)) if address else {}
        if address and not found["NAME"]:
            raise BadSetting(f"{name} names no database: write an address such as {example}.")
        return found

    def folder(self, name: str, default: Path, inside: Iterable[str]) -> Path:
        """A folder that is made with those `inside` it, where they are missing."""
        given = self.text(name, str(default))
        try:
            whole = Path(given).resolve()
            for folder in (whole, *(whole / part for part in inside)):
                folder.mkdir(parents=True, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise BadSetting(f"{name}={given}: nothing can be written in {folder}.")
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise BadSetting(f"{name}={given} can't be used as a folder: {reason}.") from None
        return whole

    def groups(self, name: str, choices: Collection[str]) -> dict[str, str]:
        """Groups, each with one of a few words, written "staff=reviewer,admins=admin"."""
        found: dict[str, str] = {}
        for word in self.words(name, []):
            group, _, choice = (part.strip() for part in word.rpartition("="))
            if not group or group in found or choice not in choices:
                raise BadSetting(
                    f"{name}: {word!r} is not a group of its own with one of "
                    f"{', '.join(choices)}, such as staff=reviewer."
                )
            found[group] = choice
        return found

    def addresses(self, name: str) -> dict[str, str]:
        """Named base addresses, written "local=http://127.0.0.1:8001/v1,other=https://…"."""
        found: dict[str, str] = {}
        for word in self.words(name, []):
            key, _, address = (part.strip() for part in word.partition("="))
            if not key or key in found or not address.startswith(("http://", "https://")):
                raise BadSetting(
                    f"{name}: {word!r} is not a name of its own with an address, such as "
                    "local=http://127.0.0.1:8001/v1."
                )
            found[key] = address
        return found


def misspelled(read: Collection[str], given: Iterable[str]) -> dict[str, str]:
    """Those of the given variables that are no more than two letters from one that is read, and not
    read themselves, each with that one.

    A name of less than ten letters may differ in one, of less than five in none: systems set many
    that are as near, such as HOST and PORT.
    """
    from rapidfuzz.distance import OSA  # reading settings needs none

    known = {name: name for name in read} | {f"{name}_FILE": name for name in read}
    found = {}
    for one in sorted(set(given) - known.keys()):
        near = [
            (distance, name)
            for name, base in known.items()
            if (distance := OSA.distance(one, name)) <= min(2, len(base) // 5)
        ]
        if near:
            found[one] = min(near)[1]
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


def secret_key(path: Path) -> str:
    """The key stored at `path`; the first caller makes it (50 random bytes, mode 0600).

    Concurrent first callers all return the same key: each writes a whole file of its own and
    links it into place, and only the first link succeeds.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".secret_key-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(50))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            os.unlink(draft)
    return path.read_text().strip()
