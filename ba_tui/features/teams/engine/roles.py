"""Roles of a team: files that describe them, agents used as roles, and which role fits some work.

A role is a Markdown file with front matter, as an agent's is; the text below is added to the prompt of its agent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from ba_tui.agent_files.agent_file import DESCRIPTION, MOST_LOOPS, AgentFile
from ba_tui.agent_files.catalog import AgentFiles, AgentFolder, files_below, read_agent
from ba_tui.agent_files.means import MAX_NAME
from ba_tui.agent_files.reading import AgentText
from ba_tui.core.agent_spec import Budget
from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.teams import MessageType, Role
from ba_tui.core.text.ranking import matching
from ba_tui.core.text.wording import clipped, nearest, one_line, one_word
from ba_tui.core.values import frozen
from ba_tui.ingress import Ingress, Owner

FOLDER = "roles"
MOST_MEMBERS = 50
"""Members of one role."""
ALONE = "general"
"""The agent of a role that names none."""
_KNOWN = frozenset({
    *("name", "description", "agent", "capabilities", "tools", "messages", "model", "maxloops", "maxturns"),
    *("maxcost", "maxtokens", "authority", "members", "lends"),
})  # fmt: skip


@frozen
class RoleFile:
    """A role and where it comes from. ``agent``: it is an agent used as a role. ``trouble``: why it can't be used,
    ``warnings``: what of its file does not count."""

    role: Role
    source: Owner
    path: Path
    agent: bool = False
    warnings: tuple[str, ...] = ()
    trouble: str = ""


class Roles:
    """Every role there is: files in ``roles`` beside the folders of agents (a later folder wins), and each of
    ``agents``, which can be used as a role too. Reads files; any thread."""

    def __init__(self, agents: AgentFiles) -> None:
        self._agents = agents

    def look(self) -> Sequence[RoleFile]:
        """The roles by name, broken ones too, then the agents that no role is called like."""
        found: dict[str, RoleFile] = {}
        folders, ingress = self._agents.beside(FOLDER)
        for folder in folders:
            if not folder.path.is_dir() or not folder.open():
                continue
            for path in files_below(folder):
                read = self._checked(_read(path, folder, ingress))
                # A broken file takes no place from one that works.
                if not read.trouble or read.role.name not in found:
                    found[read.role.name] = read
        for agent in self._agents.look():
            if agent.usable and agent.spec.name not in found:
                found[agent.spec.name] = RoleFile(_of_agent(agent), agent.source, agent.path, agent=True)
        return sorted(found.values(), key=lambda each: (each.agent, each.role.name))

    def _checked(self, file: RoleFile) -> RoleFile:
        """``file`` without a model that a file of a project may not name, or that can't be asked."""
        model = file.role.model
        if file.source != "project" or not model or not (why := self._agents.missing(model)):
            return file
        warning = f"model {clipped(model, MAX_NAME)}: the agent's model answers. {why.partition('. ')[0].rstrip('.')}"
        return replace(file, role=replace(file.role, model=None), warnings=(*file.warnings, warning))

    def usable(self) -> Sequence[Role]:
        return [each.role for each in self.look() if not each.trouble]

    def named(self, names: Sequence[str]) -> Sequence[Role]:
        """The roles of these names, in their order, once each; ``analyst*3`` wants three members.

        Raises:
            UsageError: there is no such role, naming the nearest, or its file is broken.
        """
        known = {each.role.name: each for each in self.look()}
        return [each for name in dict.fromkeys(names) if (each := _named(name, known))]


def _read(path: Path, folder: AgentFolder, ingress: Ingress) -> RoleFile:
    try:
        text = read_agent(path, folder.source, ingress)
    except OSError as error:
        text = AgentText(trouble=f"it can't be read: {error.strerror or error}")
    return role_of(text, path, folder.source)


def _named(asked: str, known: Mapping[str, RoleFile]) -> Role:
    name, mark, number = asked.strip().partition("*")
    found = known.get(name)
    if found is None:
        close = nearest(name, known)
        hint = f"Did you mean {close}?" if close else "ba team roles lists them."
        raise UsageError(f"There is no role {clipped(name, MAX_NAME)!r}.", hint)
    if found.trouble:
        raise UsageError(f"The role {name} can't be used: {found.trouble}.", f"Its file is {found.path}.")
    if not mark:
        return found.role
    if not number.isdecimal() or not 1 <= int(number[:9]) <= MOST_MEMBERS:
        raise UsageError(f"{asked!r} does not say how many members.", f"Write {name}*2, at most {name}*{MOST_MEMBERS}.")
    return replace(found.role, members=int(number))


def role_of(text: AgentText, path: Path, source: Owner) -> RoleFile:
    """The role that a file describes; numbers that are none are told and left out."""
    own = text.text("name")
    name = one_word(own, MAX_NAME) or one_word(path.stem, MAX_NAME) or "role"
    if text.trouble:
        return RoleFile(Role(name), source, path, trouble=text.trouble)
    # Every text has a first paragraph to take the description from; only the rest is worth a line.
    warnings = [each for each in text.warnings if not each.startswith("description")]
    numbers = _Numbers(text, warnings)
    messages = _words(text.fields.get("messages"))
    unknown = [each for each in messages if each not in get_args(MessageType)]
    if unknown:
        warnings.append(f"messages {', '.join(unknown)}: there are no such types")
    warnings += [f"{text.spelled[key]}: not a field of a role" for key in text.fields if key not in _KNOWN]
    tools = text.fields.get("tools")
    cost, tokens = numbers.one("maxcost", 0, 1e6, 0), int(numbers.one("maxtokens", 1, 1e9, 0))
    loops = "maxloops" if "maxloops" in text.fields else "maxturns"
    model = text.text("model") or None
    role = Role(
        name,
        one_line(text.text("description"), DESCRIPTION),
        one_word(text.text("agent"), MAX_NAME) or ALONE,
        text.prompt,
        tuple(_words(text.fields.get("capabilities"))),
        None if tools is None or tools == "*" else tuple(_words(tools)),
        tuple(cast("list[MessageType]", [each for each in messages if each not in unknown])),
        model,
        int(numbers.one(loops, 1, MOST_LOOPS, Role("").max_loops)),
        Budget(cost or None, tokens or None) if cost or tokens else None,
        numbers.one("authority", 0, 1, Role("").authority),
        int(numbers.one("members", 1, MOST_MEMBERS, 1)),
        tuple(_words(text.fields.get("lends"))),
    )
    return RoleFile(role, source, path, warnings=tuple(warnings))


class _Numbers:
    """Reads numbers of a file; adds what is wrong to ``warnings``."""

    def __init__(self, text: AgentText, warnings: list[str]) -> None:
        self._text = text
        self._warnings = warnings

    def one(self, key: str, least: float, most: float, usual: float) -> float:
        if key not in self._text.fields:
            return usual
        try:
            number = float(self._text.text(key))
        except ValueError:
            number = float("nan")
        if least <= number <= most:
            return number
        self._warnings.append(
            f"{self._text.spelled[key]} must be a number from {least:g} to {most:g}; {usual:g} counts"
        )
        return usual


def _of_agent(agent: AgentFile) -> Role:
    spec = agent.spec
    return Role(
        spec.name, spec.description, spec.name, tools=spec.tools, model=spec.model, max_loops=spec.max_loops,
        budget=spec.budget,
    )  # fmt: skip


def best_role(work: str, roles: Sequence[Role]) -> Role | None:
    """The role whose name and capabilities, then description, share most words with ``work``; None when none does."""
    found = matching(work, roles, lambda role: (" ".join((role.name, *role.capabilities)), role.description))
    return found[0] if found else None


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [word for each in value.split(",") if (word := each.strip())]
    if isinstance(value, list):
        return [text for each in cast("list[Any]", value) if isinstance(each, str) and (text := each.strip())]
    return []
