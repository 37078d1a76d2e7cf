"""Settings from environment variables: the process's, and a ``.env`` in the state folder (never the working folder's).

Only reading; how these values rank against files and flags is decided in ``layers``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any

import yaml
from dotenv import dotenv_values
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource
from pydantic_settings.sources.utils import parse_env_vars

from ba_tui.core.errors import StorageError
from ba_tui.resources import Places, read_regular
from ba_tui.settings.model import Settings

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
        raise StorageError(f"{places.dotenv} can't be read: {error.strerror or error}.", "Check its rights.") from error
    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None}


def variables(places: Places, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """All variables that count: the process's, over those of the state folder's ``.env`` when that can be read."""
    process = os.environ if env is None else env
    try:
        return {**dotenv(places), **process}
    except StorageError:
        return dict(process)


class Environment(EnvSettingsSource):
    """``BA_*`` out of a given mapping. A list is written as YAML, or as plain text: one item a line."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._given = env
        super().__init__(Settings, env_ignore_empty=True)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(self._given, case_sensitive=False, ignore_empty=True)

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        text = str(value).strip()
        if text[:1] not in {"[", "{"}:
            return [line.strip() for line in text.splitlines() if line.strip()]
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            # Given on as it stands: the model's own check says what was expected, and where.
            return text

    def data(self) -> dict[str, Any]:
        """What is set, nested as the settings are."""
        found: dict[str, Any] = self()
        for name, (group, entry, key) in STANDARD.items():
            if value := self._given.get(name, "").strip():
                found.setdefault(group, {}).setdefault(entry, {}).setdefault(key, value)
        return found

    def name(self, path: tuple[str | int, ...]) -> str:
        """The variable that set ``path``."""
        given = {name.upper() for name in self._given}
        for length in range(len(path), 0, -1):
            name = "BA_" + "__".join(str(part) for part in path[:length]).upper()
            if name in given:
                return name
        return next((name for name, target in STANDARD.items() if target == path[:3]), "environment")
