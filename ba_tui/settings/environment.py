"""Settings from environment variables: the process's, and a ``.env`` in the state folder (never the working folder's).

Only reading; how these values rank against files and flags is decided in ``layers``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.resources import Places, read_regular
from ba_tui.settings.model import Settings

PREFIX = "BA_"
OTHERS = ("BA_CONFINED", "BA_HOME", "BA_INPUT_TIMEOUT", "BA_TEAM_SECRET", "BA_TEAM_TOKEN")
"""Variables that begin so and are no settings."""

PLAIN = frozenset(
    each.name for each in fields(Settings) if each.default is None or isinstance(each.default, str | int | float)
)
"""Settings that one variable holds as it stands; lists and groups have forms of their own."""
GROUPS = frozenset(each.name for each in fields(Settings)) - PLAIN

STANDARD = {
    "ANTHROPIC_BASE_URL": ("providers", "anthropic", "base_url"),
    "OPENAI_BASE_URL": ("providers", "openai", "base_url"),
}
"""Variables that the vendors' own SDKs read, and the setting each one means."""


def dotenv(places: Places) -> dict[str, str]:
    """The variables of the ``.env`` in the state folder.

    Raises:
        StorageError: it is there and can't be read.
    """
    try:
        text = read_regular(places.dotenv, 1_000_000).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StorageError(
            f"{places.dotenv} can't be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    from dotenv import dotenv_values  # noqa: PLC0415 - hardly anybody has this file

    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None}


def variables(places: Places, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """All variables that count: the process's, over those of the state folder's ``.env`` when that can be read."""
    process = os.environ if env is None else env
    try:
        return {**dotenv(places), **process}
    except StorageError:
        return dict(process)


class EnvironmentLayer:
    """``BA_*`` and the vendors' own variables out of a given mapping, as settings."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._given = env

    def data(self) -> dict[str, Any]:
        """What is set, nested as the settings are."""
        found: dict[str, Any] = {name: value for name, value in self._named() if name in PLAIN and value}
        if any(name.split("__")[0] in GROUPS for name, _ in self._named()):
            from ba_tui.settings.prefixed import read_prefixed  # noqa: PLC0415 - 60 ms that few starts need

            found |= read_prefixed(self._given, PREFIX)
        for name, (group, entry, key) in STANDARD.items():
            if value := self._given.get(name, "").strip():
                found.setdefault(group, {}).setdefault(entry, {}).setdefault(key, value)
        return found

    def _named(self) -> Iterator[tuple[str, str]]:
        """The variables with our prefix, named as the settings are."""
        for name, value in self._given.items():
            if name.upper().startswith(PREFIX) and name not in OTHERS:
                yield name[len(PREFIX) :].lower(), value

    def name(self, path: tuple[str | int, ...]) -> str:
        """The variable that set ``path``."""
        given = {name.upper() for name in self._given}
        for length in range(len(path), 0, -1):
            name = PREFIX + "__".join(str(part) for part in path[:length]).upper()
            if name in given:
                return name
        return next((name for name, target in STANDARD.items() if target == path[:3]), "environment")
