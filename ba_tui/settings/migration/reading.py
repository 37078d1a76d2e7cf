"""Reading the files of other assistants: what is wrong with one goes into the draft, with its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.text.jsonc import read_jsonc
from ba_tui.resources import read_regular
from ba_tui.settings.migration.draft import Draft

LARGEST = 50_000_000
AGENTS = "ba reads agents from files of their own; see ba guide agents"


def text_of(path: Path, draft: Draft) -> str | None:
    """The text of the file; None where there is none, or it can't be read."""
    try:
        return read_regular(path, LARGEST).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        draft.problems.append(f"{path}: can't be read: {error.strerror or error}")
        return None


def json_object(path: Path, text: str, draft: Draft) -> dict[str, Any]:
    """The JSON object in ``text``, the content of ``path``; empty where there is none."""
    try:
        data: Any = read_jsonc(text)
    except json.JSONDecodeError as error:
        draft.problems.append(f"{path}:{error.lineno}: can't be read as JSON ({error.msg})")
        return {}
    except (ValueError, RecursionError):
        draft.problems.append(f"{path}: can't be read as JSON")
        return {}
    if not isinstance(data, dict):
        draft.problems.append(f"{path}:1: expected a JSON object")
        return {}
    return cast("dict[str, Any]", data)


def group(data: Any, key: str) -> dict[str, Any]:
    """The object at ``key`` of ``data``; empty where there is none."""
    value = cast("Mapping[str, Any]", data).get(key) if isinstance(data, Mapping) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
