"""``BA_*`` variables as settings, read by pydantic-settings. Imported only when there are any.

Which variables count at all is decided in ``environment``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import yaml
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource
from pydantic_settings.sources.utils import parse_env_vars

from ba_tui.settings.environment import PREFIX
from ba_tui.settings.model import Settings


class _Source(EnvSettingsSource):
    """Out of a given mapping. A list is written as YAML, or as plain text: one item a line."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._given = env
        # The source only looks at the fields, so a plain model serves, and most starts need no pydantic-settings.
        model = cast("type[BaseSettings]", Settings)
        super().__init__(model, env_prefix=PREFIX, env_nested_delimiter="__", env_ignore_empty=True)

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


def read_prefixed(env: Mapping[str, str]) -> dict[str, Any]:
    """What is set, nested as the settings are."""
    return _Source(env)()
