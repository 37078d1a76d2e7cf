"""Reads the file of an agent leniently: Markdown with front matter, or the TOML of Codex. Pure.

What the fields mean stands in ``agent_file``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.text.front_matter import MARK, divided, opening, read_fields
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen

_CERTAIN = ("name", "tools", "disallowedTools", "permission", "permissions", "permissionMode", "mode", "model")
"""What they say must be certain: it is not words."""


@frozen
class AgentText:
    """``fields`` by their names in lower case, without dashes and underscores; ``spelled`` as the file writes them.
    ``trouble`` says why nothing can be made of it, with the line where there is one."""

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spelled: Mapping[str, str] = field(default_factory=dict[str, str])
    prompt: str = ""
    warnings: tuple[str, ...] = ()
    trouble: str = ""

    def text(self, *names: str) -> str:
        """What the first of these fields says that is there, on one line."""
        value = next((self.fields[name] for name in names if name in self.fields), "")
        if isinstance(value, list):
            value = " ".join(str(item) for item in cast("list[Any]", value))
        # Many files write line ends as other programs' tools print them.
        return " ".join(str(value).replace("\\n", " ").split()) if isinstance(value, str | int | float) else ""


def read_markdown(text: str) -> AgentText:
    """The fields of the front matter, and what follows it as the prompt. A file without any is only a prompt."""
    matter, body, _ = divided(text)
    warnings: list[str] = []
    if matter is None:
        if text.lstrip().startswith(f"{MARK}\n"):
            return AgentText(trouble="line 1: the front matter is not closed with a line ---")
        fields, warnings = dict[str, Any](), ["there is no front matter: all of it is the prompt"]
    else:
        try:
            fields, mended = read_fields(matter, _CERTAIN)
        except ValueError as error:
            return AgentText(trouble=str(error))
        warnings = [mended] if mended else []
    return _made(fields, body, warnings)


def read_toml(text: str) -> AgentText:
    """An agent of Codex: its prompt is a field like the others."""
    try:
        fields = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return AgentText(trouble=f"it is not valid TOML: {clipped(str(error), 200)}")
    prompt = fields.pop("developer_instructions", "")
    return _made(fields, prompt if isinstance(prompt, str) else "", [])


def agent_text(fields: Mapping[str, Any]) -> AgentText:
    """An agent that is not in a file: its prompt is a field like the others."""
    prompt = fields.get("prompt")
    rest = {key: value for key, value in fields.items() if key != "prompt"}
    return _made(rest, prompt if isinstance(prompt, str) else "", [])


def given_agents(text: str) -> Sequence[tuple[str, AgentText]]:
    """The agents of --agents by name: a JSON object of objects, as in Claude Code. Raises UsageError."""
    hint = 'Such as: {"reviewer": {"description": "Reviews code", "prompt": "You review …", "tools": ["Read"]}}'
    try:
        found: Any = json.loads(text) if text else {}
    except ValueError as error:
        raise UsageError(f"--agents is not JSON: {error}.", hint) from None
    agents = cast("dict[str, dict[str, Any]]", found)
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in agents.values()):
        raise UsageError("--agents must be a JSON object with an object for each agent.", hint)
    return [(name, agent_text({**fields, "name": name})) for name, fields in agents.items()]


def _made(fields: Mapping[str, Any], body: str, warnings: list[str]) -> AgentText:
    folded = {re.sub(r"[-_]", "", name).casefold(): name for name in fields}
    plain = {key: fields[name] for key, name in folded.items()}
    if not plain.get("description"):
        heading, paragraph = opening(body)
        plain["description"] = paragraph or heading
        warnings.append("description is missing; the first paragraph is used")
    trouble = "" if body.strip() else "there is no prompt in it"
    return AgentText(plain, folded, body.strip("\n"), tuple(warnings), trouble)
