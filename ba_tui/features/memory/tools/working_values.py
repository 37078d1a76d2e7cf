"""Which values working memory holds: JSON, and not too much of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import clean_json, clean_text

LARGEST = 64_000
"""Bytes of all values of a scope as JSON."""


def storable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` as JSON holds them. Raises UsageError for what JSON does not know."""
    try:
        read: dict[str, Any] = json.loads(json.dumps(clean_json(dict(values)), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"Working memory holds JSON values only: {error}.") from error
    return {clean_text(key): value for key, value in read.items()}


def check_size(values: Mapping[str, Any]) -> None:
    """Raises UsageError when ``values`` are too large."""
    size = len(json.dumps(values))
    if size > LARGEST:
        raise UsageError(
            f"Working memory holds at most {LARGEST:,} bytes, and these values have {size:,}.",
            "Put large data into a file and keep its path.",
        )
