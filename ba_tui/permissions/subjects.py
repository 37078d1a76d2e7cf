"""Converts a call into what rules are compared with, and describes the question that a call may raise.

Whether to ask is decided in ``policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ba_tui.core.ports.permissions import EDITS, SANDBOXED, joined_rules
from ba_tui.core.questions import Risk
from ba_tui.core.tool import Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import domain_of, terms_text
from ba_tui.permissions.paths import PathRefused, TouchedPath, Workspace
from ba_tui.permissions.rule import CODE_TOOLS, OUTER, SHELL_TOOLS, Rule, Subject, literal
from ba_tui.permissions.sandbox.workspace_scan import is_protected, respelled
from ba_tui.permissions.secrets.hard_links import holds_secret
from ba_tui.permissions.shell.command_text import (
    LONGEST_RULE,
    literals,
    looks_outside,
    named_paths,
    rememberable,
    risks_of,
    risks_of_code,
    without_operators,
)
from ba_tui.resources import UserFolders

if TYPE_CHECKING:
    from ba_tui.permissions.shell.simple_commands import ResolvedCommand


@frozen
class Subjects:
    """Makes ``Subject`` values.

    ``own``: ba's folders, which only the user may change. ``confined``: whether a sandbox confines commands.
    ``unheld``: why read-only commands can't be confined; empty if they can.
    """

    workspace: Workspace
    own: UserFolders | None = None
    confined: Callable[[], bool] = lambda: False
    unheld: Callable[[], str] = lambda: "no sandbox is known"

    def of(self, tool: Tool, args: Mapping[str, Any], cwd: Path) -> Subject:
        """Return the call as rules see it; ``cwd`` is the folder in which a command would run. Raises PathRefused."""
        texts, effect = tool.paths(args), tool.effect_of(args)
        if (tool.facts.paths or tool.facts.paths_of) and not texts:
            texts = (".",)
        paths = tuple(self._lent(seen, effect) for text in texts for seen in self.both(text))
        command: str | None = None
        named: tuple[TouchedPath, ...] = ()
        commands: tuple[ResolvedCommand, ...] = ()
        trouble = ""
        if tool.effect is Effect.EXECUTE and tool.facts.target:
            command, trouble = str(args.get(tool.facts.target, "")), "the command was not checked"
            text = without_operators(command) if tool.name in CODE_TOOLS else command
            if tool.name in SHELL_TOOLS:
                resolved = judging().resolve_script(command, self.workspace.root, cwd, self.both)
                lent = bool(self.workspace.lent) and args.get(OUTER) is not True and self.confined()
                commands = tuple(map(self._with_lent, resolved.commands)) if lent else resolved.commands
                trouble = resolved.trouble
                text = text if trouble else " ".join(each.unread for each in commands).strip()
            if text:
                found = dict.fromkeys(path for pair in named_paths(text, self.workspace, cwd) for path in pair)
                named = tuple(self.seen(path) for path in found)
        saves, why = effect is not tool.effect, self.unheld() if tool.facts.reads else ""
        reads = tool.facts.reads and not why
        unheld = f"it declares effect: read, but nothing keeps it from writing here: {why}" if why else ""
        if effect is Effect.READ and unheld:
            effect = Effect.EXECUTE
        call = (tool.name, effect, tool.target(args), command, paths, named)
        subject = Subject(
            *call,
            args=_whole(tool, args),
            confined=tool.facts.confined,
            reads=reads,
            unheld=unheld if tool.effect is Effect.READ else "",
            commands=commands,
            trouble=trouble,
            asks=tool.facts.asks,
            copied=tool.facts.copied,
        )
        if saves:
            subject = replace(subject, saves=True)
        return self._with_sql(subject, tool, args) if tool.facts.sql else subject

    def _with_sql(self, subject: Subject, tool: Tool, args: Mapping[str, Any]) -> Subject:
        """Return ``subject`` with the effects of its SQL, which may exceed the tool's usual effect, and the files in
        it."""
        text = str(args.get(tool.facts.sql) or "")
        sql = judging().classify(text, *((tool.facts.dialect_of(args),) if tool.facts.dialect_of else ()))
        files = tuple(seen for text in sql.files for seen in self.both(text))
        effect = Effect.NETWORK if sql.network else Effect.WRITE if sql.kinds - {"read"} else subject.effect
        kinds = {*sql.kinds, *(["network"] if sql.network else [])}
        return replace(subject, effect=effect, kinds=frozenset(kinds), paths=(*subject.paths, *files))

    def both(self, text: str, cwd: Path | None = None) -> list[TouchedPath]:
        """Return a path both as written and with links followed: a rule about either applies."""
        name, target = self.workspace.both(text, cwd)
        resolved = self.seen(target)
        if name is target or name == target:
            return [resolved]
        written = self.seen(name)
        # The target decides whether the file is in the workspace; its name can only make the verdict stricter.
        strict = written.secret or written.guarded
        return [resolved, replace(written, inside=resolved.inside)] if strict else [resolved]

    def _lent(self, seen: TouchedPath, effect: Effect) -> TouchedPath:
        """Return a path in a read-only folder as inside the workspace if the call reads it; refuse to write it."""
        if seen.inside or not self.workspace.lends(seen.path):
            return seen
        if effect is not Effect.READ:
            raise PathRefused(
                f"{self.workspace.shown(seen.path)} can only be read.",
                "Write the file to the workspace.",
                malformed=False,
            )
        return replace(seen, inside=True)

    def _with_lent(self, command: ResolvedCommand) -> ResolvedCommand:
        """Return ``command`` with read-only folders as readable: the sandbox keeps them from being written."""

        def lent(files: Sequence[TouchedPath]) -> tuple[TouchedPath, ...]:
            return tuple(
                replace(seen, inside=True, guarded=False) if self.workspace.lends(seen.path) else seen for seen in files
            )

        return replace(command, reads=lent(command.reads), named=lent(command.named))

    def seen(self, path: Path) -> TouchedPath:
        """Return what rules need to know about a resolved path."""
        places = self.workspace.places(path)
        own = self.own
        secret = holds_secret(path, self.workspace) or bool(own and path in own.secrets)
        folders = {own.config, own.data, own.state} if own else set[Path]()
        guarded = any(map(path.is_relative_to, folders)) or any(
            is_protected(Path(place)) for place in places or (path,)
        )
        guarded = guarded or path in self.workspace.started or respelled(path)
        relative = self.workspace.relative(path) if places else None
        return TouchedPath(path, relative, places, bool(places), secret, guarded)


def judging():
    """Return the module that judges commands. It is loaded on first use because it holds the shell grammar."""
    from ba_tui.permissions import command_judging  # noqa: PLC0415

    return command_judging


def _whole(tool: Tool, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``args`` with defaults filled in, since conditions are about the effective arguments."""
    known: Any = tool.input_schema.get("properties")
    if not isinstance(known, Mapping):
        return args
    fields = cast("Mapping[str, Any]", known).items()
    return {**{name: about["default"] for name, about in fields if name not in args and "default" in about}, **args}


_EDITORS = frozenset(rule.partition("(")[0] for rule in EDITS)
_SEARCHES = frozenset({"web_search"})
MCP = "mcp__"
"""The prefix of MCP tool names."""


def risks(subject: Subject, workspace: Workspace, cwd: Path) -> tuple[Risk, ...]:
    """Return what the user should know before allowing a call; ``cwd`` is the folder in which a command would run."""
    if subject.tool.startswith(MCP):
        return ("calls an MCP server", *(("outside the workspace",) if subject.outside else ()))
    if subject.command is not None:
        code = subject.tool in CODE_TOOLS
        if subject.commands and not subject.trouble:
            return judging().risks(subject)
        text = literals(subject.command) if code else subject.command
        away = subject.outside or looks_outside(text, workspace, cwd)
        return risks_of_code(subject.command, away) if code else risks_of(subject.command, away)
    if subject.asks:
        return ("writes to memory",)
    by_effect: dict[Effect, tuple[Risk, ...]] = {
        Effect.WRITE: ("writes",),
        Effect.NETWORK: ("network",),
        Effect.EXECUTE: ("runs a command",),
    }
    outside: tuple[Risk, ...] = ("outside the workspace",) if subject.outside else ()
    return (*by_effect.get(subject.effect, ()), *outside)


GUARDING = "for files that run something or instruct models"
"""Explains rules about @guarded, whose name alone means nothing to a user."""


def named(rule: Rule) -> str:
    """Return a rule and its source for display."""
    place = rule.source or "given"
    return f"{rule.text} ({f'{place}: {GUARDING}' if rule.pattern == '@guarded' else place})"


def secret_named(rule: Rule, subject: Subject, workspace: Workspace) -> str:
    """Return a sentence that names the file with secrets if ``rule`` is about secrets; empty otherwise."""
    if rule.pattern != "@secret":
        return ""
    files = (seen for each in subject.files() for seen in each.paths)
    secret = next(seen for seen in (*subject.paths, *subject.named, *files) if seen.secret)
    return f" {workspace.shown(secret.path)} holds secrets, so tools neither read nor write it."


def key_of(rule: Rule) -> str:
    """Return the key under which hits of a rule are counted."""
    return f"{rule.verdict} {rule.text}{terms_text(rule.terms)}"


def for_session(subject: Subject) -> str | None:
    """Return rules that cover similar calls for the session, if they are broader than ``suggested``; None if none
    should."""
    if subject.stays:
        return f"{subject.tool}({SANDBOXED})"
    if subject.tool in _EDITORS and subject.paths:
        plain = all(seen.relative is not None and not seen.guarded for seen in subject.paths)
        return joined_rules(EDITS) if plain else None
    return subject.tool if subject.tool in _SEARCHES or subject.tool.startswith(MCP) else None


def suggested(subject: Subject) -> str | None:
    """Return the narrowest rule that covers this and similar calls; None if none should be remembered."""
    if subject.tool in SHELL_TOOLS:
        return subject.offer
    if subject.asks:
        return None
    if subject.tool.startswith(MCP) and not subject.paths:
        # The meaning of a third-party tool's arguments is unknown, except for addresses.
        host = domain_of(subject.target) if "://" in subject.target else ""
        return f"{subject.tool}({host})" if host else subject.tool
    if subject.command is not None:
        return f"{subject.tool}({subject.command})" if rememberable(subject.command) else None
    if subject.kinds:
        # Reads need no rule. Unknown statements and those that reach further should not get one.
        kinds = set(subject.kinds - {"read"})
        return f"{subject.tool}({kinds.pop()})" if kinds in ({"write"}, {"ddl"}) and not subject.outside else None
    if len(subject.paths) > 1 or subject.tool in _SEARCHES:
        return None
    if subject.paths:
        seen = subject.paths[0]
        about = literal(seen.relative if seen.relative is not None else seen.path.as_posix())
    else:
        about = domain_of(subject.target) or literal(subject.target)
    if not about:
        return subject.tool if subject.effect is not Effect.NETWORK else None
    text = f"{subject.tool}({about})"
    return text if len(about) <= LONGEST_RULE and text.isprintable() and about == about.strip() else None
