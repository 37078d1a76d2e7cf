"""Values as JSON: one line for the journal, and a short hash by which equal arguments are known again.

Pure. Which events there are stands in ``ba_tui.core.events``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any


def plain(value: Any) -> Any:
    """What ``json`` does not know: our values, dates, and whatever a model's or tool's data may hold."""
    if isinstance(value, datetime):
        return value.isoformat()
    names = getattr(value, "__dataclass_fields__", None)
    return repr(value) if names is None else {name: getattr(value, name) for name in names}


def args_hash(args: Mapping[str, Any]) -> str:
    """What Judged keeps of a call's arguments: the same for the same ones, in whatever order they stand."""
    try:
        text = _sorted(args)
    except (ValueError, TypeError, RecursionError):
        text = repr(args)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


_sorted = json.JSONEncoder(default=plain, sort_keys=True, separators=(",", ":")).encode
json_line = json.JSONEncoder(default=plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
"""Return a value as JSON without a line end. Raises ValueError for numbers that JSON does not know."""
