"""Loads what the model reads about each tool, its description and parameter schema, from a folder of YAML files.

What the tools do is in the factories; a definition holds words only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen


@frozen
class Definition:
    """``examples`` are arguments of typical calls."""

    description: str
    input_schema: Mapping[str, Any]
    examples: tuple[Mapping[str, Any], ...] = ()


def load_definitions(folder: Path) -> dict[str, Definition]:
    """Every ``<tool>.yaml`` of ``folder`` by the tool's name.

    Raises:
        UsageError: a file cannot be read, or lacks ``description`` or ``input_schema``.
    """
    found = {path.stem: _definition(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.yaml"))}
    if not found:
        raise UsageError(f"No tool descriptions in {folder}.", "Restore the files or reinstall.")
    return found


def with_examples(tool: Tool, definitions: Mapping[str, Definition]) -> Tool:
    """``tool`` with the examples of its definition, if there are any."""
    found = definitions.get(tool.name)
    return replace(tool, facts=replace(tool.facts, examples=found.examples)) if found and found.examples else tool


@lru_cache(maxsize=256)
def _definition(path: Path, changed: int) -> Definition:
    """Read the file as it was last ``changed``, once for all sessions of the process. Raises UsageError."""
    import yaml  # noqa: PLC0415 - heavy, and only needed once an agent is built

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        content: Any = yaml.load(path.read_text("utf-8"), loader)  # noqa: S506 - a safe loader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {error}", "Restore the file or reinstall.") from error
    match content:
        case {"description": str(description), "input_schema": {"type": "object", **schema}, **rest}:
            examples = tuple(cast("list[Mapping[str, Any]]", rest.get("examples") or []))
            return Definition(description.strip(), {"type": "object", **schema}, examples)
        case _:
            raise UsageError(f"{path} needs description and input_schema.", "Restore the file or reinstall.")
