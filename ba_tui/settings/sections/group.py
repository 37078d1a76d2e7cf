"""What all groups of settings have in common."""

from __future__ import annotations

from typing import Any, ClassVar

from ba_tui.core.values import frozen


@frozen
class SettingsGroup:
    """Settings that stand together. Descriptions are written out: reading them from docstrings would be slow."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
