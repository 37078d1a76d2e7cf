"""Reads files of agents, leniently: Markdown with front matter, or the TOML of Codex.

Each file becomes an ``AgentSpec`` with the tools that it names in the words of any assistant, and a list of what ba
does not support.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

from ba_tui.agent_files.means import MAX_NAME, AgentMeans
from ba_tui.core.effects import READ_ONLY, UNLIMITED, AgentCeiling
from ba_tui.core.errors import UsageError
from ba_tui.core.events import MAIN
from ba_tui.core.ports.agents import AgentLine, AgentState
from ba_tui.core.teamwork import AgentSpec
from ba_tui.core.text.front_matter import MARK, divided, opening, read_fields
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped, one_line, one_word
from ba_tui.core.values import frozen
from ba_tui.ingress import Owner
from ba_tui.settings.sections.models import Effort
from ba_tui.settings.tool_names import ALIASES, own_names

Names: TypeAlias = tuple[str, ...]
ALL = frozenset({"*", "all"})
_NAME = regex(r"([^\s,()\[\]\"']+)(\([^()]*(?:\([^()]*\)[^()]*)*\))?")
_RUNNING = ("shell", "shell_output", "shell_kill", "python")
"""Tools for what Claude Code does with Bash."""
_MEANT: Mapping[str, Names] = {
    **{theirs.casefold(): (ours,) for theirs, ours in own_names().items()},
    "bash": _RUNNING,
    "execute": _RUNNING,
    "runcommands": _RUNNING,
    "execute/runinterminal": _RUNNING,
    "notebookedit": ("edit_file",),
    "edit/editfiles": ("edit_file", "write_file"),
    "editfiles": ("edit_file", "write_file"),
    "patch": ("apply_patch",),
    "list": ("list_files",),
    "search": ("grep", "glob"),
    "search/codebase": ("grep", "glob"),
    "codebase": ("grep", "glob"),
    "web": ("web_fetch", "web_search"),
    "web/fetch": ("web_fetch",),
    "fetch": ("web_fetch",),
    "todo": ("todo_write", "todo_read"),
    "todos": ("todo_write", "todo_read"),
    "todoread": ("todo_read",),
    "question": ("ask_user",),
}
"""Our tools by the names of Claude Code, OpenCode and Copilot, in lower case."""
_TAKEN: Mapping[str, Names] = {
    "bash": (*_RUNNING, "run_skill_script"),
    "shell": (*_RUNNING, "run_skill_script"),
    "execute": (*_RUNNING, "run_skill_script"),
    "edit": ("edit_file", "write_file", "apply_patch"),
    "write": ("write_file", "apply_patch"),
}
"""Tools that are also removed when one of these is removed, because they could do the same."""
_NO, _ALLOWED_WORDS = frozenset({"false", "no", "off", "deny", "0"}), frozenset({"true", "yes", "on", "1"})


@frozen
class AgentTools:
    """The tools of an agent. ``tools``: the only ones it has; None: all but those in ``without``. ``unknown``: names of
    no tool, which give none; ``limits``: names with a limit in brackets, such as ``Bash(git:*)``."""

    tools: Names | None = None
    without: Names = ()
    unknown: Names = ()
    limits: Names = ()
    partly: Names = ()
    """Tools that are denied in some cases only."""


def chosen_tools(fields: Mapping[str, Any], known: Collection[str]) -> AgentTools:
    """Return the tools that ``fields`` name in ``tools``, ``disallowedtools`` and OpenCode's ``permission``. ``known``:
    the existing tools."""
    given, off = _asked(fields.get("tools", fields.get("allowedtools")))
    allowed, denied, partly = _ruled(fields.get("permission", fields.get("permissions")))
    refused = [_bare(word) for word in (*off, *denied, *_words(fields.get("disallowedtools")))]
    without = _ours(refused, known, taken=True)
    given = allowed if given is None else given
    if any(name in ALL for name in refused):
        given = []
    if given is None or any(word.casefold() in ALL for word in given):
        return AgentTools(None, without, partly=partly)
    names = [_bare(word) for word in given]
    tools = _ours(names, known)
    if {"write_file", "edit_file"} <= set(tools) and "apply_patch" in known:
        tools = (*tools, "apply_patch")
    unknown = tuple(clipped(word, 60) for word, name in zip(given, names, strict=True) if not _ours([name], known))
    limits = tuple(clipped(word, 60) for word, name in zip(given, names, strict=True) if word != name)
    kept = tuple(name for name in dict.fromkeys(tools) if name not in without)
    return AgentTools(kept, without, unknown, tuple(word for word in limits if word not in unknown), partly)


def _asked(value: Any) -> tuple[list[str] | None, list[str]]:
    """Return the tools that the field ``tools`` names (None: all), and those that it switches off."""
    if not isinstance(value, dict):
        return (None if value is None else _words(value)), []
    switches = cast("dict[str, Any]", value)
    off = [name for name, state in switches.items() if _said(state) in _NO]
    if any(name in ALL for name in off):
        return [name for name, state in switches.items() if _said(state) in _ALLOWED_WORDS], []
    return None, off


def _ruled(value: Any) -> tuple[list[str] | None, list[str], Names]:
    """Read OpenCode's permissions: return the allowed tools (None: all), the denied ones, and those denied in part."""
    if _said(value) == "deny":
        return [], [], ()
    rules = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    denied, partly = list[str](), list[str]()
    for name, rule in rules.items():
        cases = cast("dict[str, Any]", rule) if isinstance(rule, dict) else {"*": rule}
        said = {_said(each) for each in cases.values()}
        # Tools denied by default are left out even if an exception allows some calls.
        if said == {"deny"} or _said(cases.get("*")) == "deny":
            denied.append(name)
        elif "deny" in said:
            partly.append(name)
    if any(name in ALL for name in denied):
        return [name for name in rules if name not in denied], [], tuple(partly)
    return None, denied, tuple(partly)


def _ours(names: Iterable[str], known: Collection[str], *, taken: bool = False) -> Names:
    """Return the tools in ``known`` that ``names`` mean; with ``taken`` also tools that could do the same."""
    found: dict[str, None] = {}
    for name in names:
        folded = name.casefold()
        more = _TAKEN.get(folded, ()) if taken else ()
        alike = [ours for ours, theirs in ALIASES.items() if name in theirs] if taken else []
        ours = (name,) if name in known else _MEANT.get(folded, ())
        found.update(dict.fromkeys(each for each in (*ours, *more, *alike) if each in known))
    return tuple(found)


def _words(value: Any) -> list[str]:
    """Return the names in a text or a list, each with its brackets."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str)]
    return list(dict.fromkeys(found[0] for text in texts for found in _NAME.finditer(text)))


def _bare(word: str) -> str:
    return word.partition("(")[0]


def _said(value: Any) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


_CERTAIN = ("name", "tools", "disallowedTools", "permission", "permissions", "permissionMode", "mode", "model")
"""Fields that must be valid YAML: their values are no prose."""


@frozen
class AgentText:
    """The text of an agent. ``fields`` have names in lower case without dashes and underscores; ``spelled`` has the
    names in the file. ``trouble``: why the file is unusable, with the line where known."""

    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    spelled: Mapping[str, str] = field(default_factory=dict[str, str])
    prompt: str = ""
    warnings: tuple[str, ...] = ()
    trouble: str = ""

    def text(self, *names: str) -> str:
        """Return the first of these fields that exists, as one line."""
        value = next((self.fields[name] for name in names if name in self.fields), "")
        if isinstance(value, list):
            value = " ".join(str(item) for item in cast("list[Any]", value))
        # Many files contain line ends as the two characters \n, copied from the output of tools.
        return " ".join(str(value).replace("\\n", " ").split()) if isinstance(value, str | int | float) else ""


def read_markdown(text: str) -> AgentText:
    """Parse Markdown: front matter has the fields, the rest is the prompt. Without front matter all is prompt."""
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
    """Parse an agent of Codex, whose prompt is a field."""
    try:
        fields = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return AgentText(trouble=f"it is not valid TOML: {clipped(str(error), 200)}")
    prompt = fields.pop("developer_instructions", "")
    return _made(fields, prompt if isinstance(prompt, str) else "", [])


def agent_text(fields: Mapping[str, Any]) -> AgentText:
    """Convert the fields of an agent, of which one is the prompt."""
    prompt = fields.get("prompt")
    rest = {key: value for key, value in fields.items() if key != "prompt"}
    return _made(rest, prompt if isinstance(prompt, str) else "", [])


def given_agents(text: str) -> Sequence[tuple[str, AgentText]]:
    """Parse --agents: a JSON object with an object for each agent, as in Claude Code. Raises UsageError."""
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


MOST_LOOPS = 500
MOST_SKILLS = 10
DESCRIPTION = 1_024
"""Characters of a description, by which other agents choose."""
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
"""Unsupported fields, with what happens instead."""
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
    """An agent and its file; ``spec`` describes the agent. The other fields are as in AgentLine."""

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
    """Return the agent that a file describes; an agent of a ``plugin`` is named ``plugin:name``. May read keys of
    providers, to check the model."""
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


def _tools_left(choice: AgentTools) -> list[str]:
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


def _ceiling(text: AgentText) -> tuple[AgentCeiling, str]:
    """Return the agent's ceiling, and the mode that it asks for but does not get."""
    mode, sandbox = text.text("permissionmode"), text.text("sandboxmode").casefold()
    key = text.spelled.get("permissionmode", "")
    if sandbox in _READING or mode.casefold() in _READING:
        return READ_ONLY, ""
    if sandbox == "workspace-write":
        return AgentCeiling(outside=False), ""
    if sandbox:
        return UNLIMITED, f"{text.spelled['sandboxmode']} {clipped(sandbox, 40)}: the mode of the session counts"
    if mode and mode.casefold() not in _ASKING:
        return UNLIMITED, f"{key} {clipped(mode, 40)}: the mode of the session counts"
    return UNLIMITED, ""


def _limit(ceiling: AgentCeiling, *, isolated: bool) -> str:
    copy = "it works in a copy of the project, without commands," if isolated else ""
    if ceiling.effects == READ_ONLY.effects:
        return f"{copy} and only reads" if copy else "it only reads"
    return copy.rstrip(",") or ("" if ceiling.outside else "its commands run in the sandbox only")


def _isolation(text: AgentText) -> str:
    return text.text("isolation").casefold()


def _model(wanted: str, means: AgentMeans) -> tuple[str | None, str]:
    """Return the model's id (None: the session's model), and why it differs from the model in the file."""
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
    """Return the reasoning effort (empty: that of the settings), and why it differs from the effort in the file."""
    said = text.text(*_EFFORTS).casefold()
    if said in {"", "inherit", "default"}:
        return "", ""
    if said not in EFFORTS:
        return "", f"effort must be one of {', '.join(EFFORTS)}, not {clipped(said, 40)}; that of the settings counts"
    if model and not means.model(model).thinking:
        return "", f"effort {said}: {model} takes none"
    return said, ""


def _loops(text: AgentText) -> tuple[int, str]:
    """Return the number of model requests for a task, and what is wrong with the number in the file."""
    name = next((key for key in ("maxturns", "maxsteps", "steps", "maxloops") if key in text.fields), "")
    said = text.text(name) if name else ""
    usual = AgentSpec("").max_loops
    if not name:
        return usual, ""
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    if number < 1:
        return usual, f"{text.spelled[name]} must be a whole number from 1 to {MOST_LOOPS}; {usual} is used"
    return min(number, MOST_LOOPS), ""
