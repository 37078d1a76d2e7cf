"""What the file of an agent means here: the agent to be made from it, and what of it is not done.

How the files are written stands in ``reading``, where they lie in ``catalog``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ba_tui.agent_files.means import MAX_NAME, AgentMeans
from ba_tui.agent_files.reading import AgentText
from ba_tui.agent_files.tool_names import ToolChoice, chosen_tools
from ba_tui.core.agent_spec import AgentSpec
from ba_tui.core.effects import READ_ONLY, UNLIMITED, Ceiling
from ba_tui.core.events import MAIN
from ba_tui.core.ports.agents import AgentLine, AgentState
from ba_tui.core.text.wording import clipped, one_line, one_word
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.settings.sections.providers import Effort

MOST_LOOPS = 500
MOST_SKILLS = 10
DESCRIPTION = 1_024
"""Characters of a description that other agents choose by."""
EFFORTS: tuple[str, ...] = get_args(Effort)
_ASKING = frozenset({"default", "ask", "inherit", "manual"})
_READING = frozenset({"plan", "readonly", "read-only"})
_UNSUPPORTED: Mapping[str, str] = {
    "hooks": "its own hooks do not run",
    "memory": "it has no memory of its own",
    "mcpservers": "an agent has the MCP servers of its session",
    "temperature": "the temperature of the settings counts",
    "topp": "it is not sent to models",
    "initialprompt": "it is not sent",
    "prompt": "the text below the front matter is its prompt",
}
"""Fields that people rely on and that nothing here does yet, with what happens instead."""
_EFFORTS = ("effort", "modelreasoningeffort", "reasoningeffort")
_SLOTS = {"haiku": "small", "opus": "reasoning"}
_YES = frozenset({"true", "yes", "on"})
_NOT_ASKED = frozenset({"false", "no", "none", "off"})
_KNOWN = frozenset({
    *("name", "description", "tools", "allowedtools", "disallowedtools", "permission", "permissions", "permissionmode"),
    *("model", "color", "colour", "maxturns", "maxsteps", "steps", "maxloops", "mode", "sandboxmode", "disable"),
    *("disabled", "background", "skills", "isolation", *_EFFORTS),
})  # fmt: skip


@frozen
class AgentFile:
    """An agent and the file that describes it; ``spec`` is what it is made from. The rest as in AgentLine."""

    spec: AgentSpec
    source: Owner
    path: Path
    color: str = ""
    off: bool = False
    without: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trouble: str = ""
    shadowed: bool = False
    background: bool = False
    isolated: bool = False

    @property
    def usable(self) -> bool:
        return not (self.trouble or self.shadowed or self.off)

    @property
    def state(self) -> AgentState:
        if self.trouble:
            return "broken"
        if self.shadowed:
            return "shadowed"
        return "off" if self.off else "partly" if self.unsupported else "ready"

    @property
    def line(self) -> AgentLine:
        spec = self.spec
        return AgentLine(
            spec.name, self.state, self.source, str(self.path), spec.description, spec.model or "", spec.tools,
            self.without, _limit(spec.ceiling, isolated=self.isolated), spec.max_loops, self.color, self.unsupported,
            self.ignored, self.warnings, self.trouble,
        )  # fmt: skip


def agent_of(text: AgentText, path: Path, source: Owner, means: AgentMeans, plugin: str = "") -> AgentFile:
    """The agent that a file describes; one of a ``plugin`` is called ``plugin:name``. Asks for models, which may read
    keys."""
    own = text.text("name")
    name = one_word(own, MAX_NAME) or one_word(path.stem, MAX_NAME) or "agent"
    warnings = list(text.warnings)
    if not own and not text.trouble:
        warnings.append("name is missing; the file's name is used")
    elif own and own != name:
        warnings.append(f"it is called {name}: the name {clipped(own, 60)!r} is not one word in lower case")
    trouble = text.trouble
    if not plugin and name == MAIN and not trouble:
        trouble = f"the name {MAIN} is ba's own"
    name = f"{plugin}:{name}" if plugin else name
    if trouble:
        return AgentFile(AgentSpec(name, _description(text)), source, path, warnings=tuple(warnings), trouble=trouble)
    choice = chosen_tools(text.fields, means.tools())
    ceiling, refused = _ceiling(text)
    model, other = _model(text.text("model"), means)
    loops, wrong = _loops(text)
    effort, weak = _effort(text, model, means)
    if choice.tools == () and not choice.unknown:
        warnings.append("its file gives it no tools")
    left = [*_tools_left(choice), *_fields_left(text), refused]
    spec = AgentSpec(
        name,
        _description(text),
        text.prompt,
        model,
        choice.tools,
        replace(
            ceiling,
            tools=None if choice.tools is None else frozenset(choice.tools),
            without=frozenset(choice.without),
        ),
        loops,
        effort=effort,
        skills=tuple(dict.fromkeys(text.text("skills").replace(",", " ").split()))[:MOST_SKILLS],
    )
    return AgentFile(
        spec, source, path, text.text("color", "colour"), text.text("disable", "disabled").casefold() == "true",
        choice.without if choice.tools is None else (), tuple(filter(None, left)), _ignored(text),
        tuple(filter(None, (*warnings, other, wrong, weak))),
        background=text.text("background").casefold() in _YES,
        isolated=_isolation(text) == "worktree",
    )  # fmt: skip


def _description(text: AgentText) -> str:
    return one_line(text.text("description"), DESCRIPTION)


def _tools_left(choice: ToolChoice) -> list[str]:
    left = [f"tools {', '.join(choice.unknown)}: there are none of that name here"] if choice.unknown else []
    if choice.limits:
        left.append(f"limits {', '.join(choice.limits)}: it has the whole tool, and your rules decide about each call")
    if choice.partly:
        left.append(f"permission {', '.join(choice.partly)}: your own rules decide about each call")
    return left


def _fields_left(text: AgentText) -> list[str]:
    asked = [key for key in _UNSUPPORTED if text.fields.get(key) and text.text(key).casefold() not in _NOT_ASKED]
    left = [f"{text.spelled[key]}: {_UNSUPPORTED[key]}" for key in asked]
    if (isolation := _isolation(text)) not in {"", "worktree", *_NOT_ASKED}:
        left.append(f"isolation {clipped(isolation, 40)}: only worktree is known, so it works in your folder")
    return [*left, "mode primary: it works for ba, not in its place"] if text.text("mode") == "primary" else left


def _ignored(text: AgentText) -> tuple[str, ...]:
    return tuple(name for key, name in text.spelled.items() if key not in _KNOWN and key not in _UNSUPPORTED)


def _ceiling(text: AgentText) -> tuple[Ceiling, str]:
    """The most that it may do, and what it asks for that it does not get."""
    mode, sandbox = text.text("permissionmode"), text.text("sandboxmode").casefold()
    key = text.spelled.get("permissionmode", "")
    if sandbox in _READING or mode.casefold() in _READING:
        return READ_ONLY, ""
    if sandbox == "workspace-write":
        return Ceiling(outside=False), ""
    if sandbox:
        return UNLIMITED, f"{text.spelled['sandboxmode']} {clipped(sandbox, 40)}: the mode of the session counts"
    if mode and mode.casefold() not in _ASKING:
        return UNLIMITED, f"{key} {clipped(mode, 40)}: the mode of the session counts"
    return UNLIMITED, ""


def _limit(ceiling: Ceiling, *, isolated: bool) -> str:
    copy = "it works in a copy of the project, without commands," if isolated else ""
    if ceiling.effects == READ_ONLY.effects:
        return f"{copy} and only reads" if copy else "it only reads"
    return copy.rstrip(",") or ("" if ceiling.outside else "its commands run in the sandbox only")


def _isolation(text: AgentText) -> str:
    return text.text("isolation").casefold()


def _model(wanted: str, means: AgentMeans) -> tuple[str | None, str]:
    """The id of the model that answers, None for the session's, and why it is not the one that the file names."""
    if not wanted or wanted.casefold() in {"inherit", "default", "main"}:
        return None, ""
    missing = means.missing(wanted)
    if not missing:
        return means.model(wanted).id, ""
    why, slot = missing.partition(". ")[0].rstrip("."), _SLOTS.get(wanted.casefold())
    if slot and (chosen := means.slot(slot)) and not means.missing(chosen):
        return means.model(chosen).id, f"model {wanted}: your model for {slot} answers. {why}"
    return None, f"model {clipped(wanted, 60)}: the session's model answers. {why}"


def _effort(text: AgentText, model: str | None, means: AgentMeans) -> tuple[str, str]:
    """How much a model that reasons spends, empty for what the settings say, and why it is not what the file says."""
    said = text.text(*_EFFORTS).casefold()
    if said in {"", "inherit", "default"}:
        return "", ""
    if said not in EFFORTS:
        return "", f"effort must be one of {', '.join(EFFORTS)}, not {clipped(said, 40)}; that of the settings counts"
    if model and not means.model(model).thinking:
        return "", f"effort {said}: {model} takes none"
    return said, ""


def _loops(text: AgentText) -> tuple[int, str]:
    """Model requests within one task, and what is wrong with the number in the file."""
    name = next((key for key in ("maxturns", "maxsteps", "steps", "maxloops") if key in text.fields), "")
    said = text.text(name) if name else ""
    usual = AgentSpec("").max_loops
    if not name:
        return usual, ""
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    if number < 1:
        return usual, f"{text.spelled[name]} must be a whole number from 1 to {MOST_LOOPS}; {usual} is used"
    return min(number, MOST_LOOPS), ""
