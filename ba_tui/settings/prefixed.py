"""Parse variables with a prefix (``BA_*``) with pydantic-settings. Imported only when there are any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

import yaml
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource
from pydantic_settings.sources.utils import parse_env_vars

from ba_tui.settings.model import Settings


class _Source(EnvSettingsSource):
    """A source that reads a given mapping. A list is YAML, or plain text with one item a line."""

    def __init__(self, env: Mapping[str, str], prefix: str) -> None:
        self._given = env
        # The source reads only the fields, so a plain model is enough.
        super().__init__(
            cast("type[BaseSettings]", _model(Settings)),
            env_prefix=prefix,
            env_nested_delimiter="__",
            env_ignore_empty=True,
        )

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return parse_env_vars(self._given, case_sensitive=False, ignore_empty=True)

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        text = str(value).strip()
        if text[:1] not in {"[", "{"}:
            return [line.strip() for line in text.splitlines() if line.strip()]
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            # Passed on unchanged: the check of settings reports what was expected, and where.
            return text


@cache
def _model(kind: type[Any]) -> type[BaseModel]:
    """Return a pydantic model of a group of settings with its subgroups; it is not used for checks."""
    hints = get_type_hints(kind)
    shapes: dict[str, Any] = {each.name: (_shape(hints[each.name]), None) for each in fields(kind)}
    return create_model(kind.__name__, **shapes)


def _shape(hint: Any) -> Any:
    if is_dataclass(hint):
        return _model(cast("type[Any]", hint))
    if get_origin(hint) is dict:
        key, inner = get_args(hint)
        return dict[key, _shape(inner)]
    return hint


def read_prefixed(env: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return the settings in variables whose names begin with ``prefix``, as nested data."""
    return _Source(env, prefix)()
