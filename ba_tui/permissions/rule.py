"""Rules: ``tool(pattern)`` with a verdict, parsed and checked, and which calls a rule covers.

The order of verdicts and the effect of modes are in ``policy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import SANDBOXED, RuleLayer, RuleLine
from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.tool import Effect
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import (
    ANY,
    DOMAIN,
    KINDS,
    NO_TERMS,
    Misfit,
    Terms,
    catches,
    domain_problem,
    is_of,
    may_be_of,
    pattern_problem,
    permits,
    read_terms,
)
from ba_tui.permissions.paths import TouchedPath, folded

if TYPE_CHECKING:
    from ba_tui.permissions.shell.simple_commands import ResolvedCommand

RuleAnswer: TypeAlias = Literal["allow", "ask", "deny"]

COMMAND_TOOLS = ("shell", "python")
CODE_TOOLS = ("python",)
"""Tools whose commands are Python code."""
SHELL_TOOLS = ("shell",)
"""Tools whose commands run in a shell."""
OUTER = "outside"
"""What rules call running a command outside the sandbox; also the name of the argument for it."""
CLASSES = ("@secret", "@guarded", "@outside")
BROAD = ("**", SANDBOXED)
"""Patterns that are too broad to answer an ask rule."""
KINDS_IN_DOUBT: Mapping[str, frozenset[str]] = {
    "read": frozenset({"unknown"}),
    "write": frozenset({"ddl", "unknown"}),
    "ddl": frozenset({"unknown"}),
    "unknown": frozenset(),
}
"""The kinds of SQL that a strict rule about one kind also covers."""
EFFECTS = {f"@{effect.value}": effect for effect in Effect}
EVENTS = ("after_subtask", "on_error", "on_plan_change")
"""Rules about events other than calls. They are refused because nothing asks at these events yet."""
LONGEST = 500
_TOOL = regex(r"[A-Za-z0-9_.*-]+")
_HINT = "Rules read TOOL or TOOL(PATTERN), such as edit_file(src/**) or shell(git status)."


@frozen
class Subject:
    """A call as rules see it. ``command``: the unchanged text of a tool that runs commands, otherwise None.

    ``named``: paths that words of the command may name; only strict rules consider them.
    """

    tool: str
    effect: Effect
    target: str = ""
    command: str | None = None
    paths: tuple[TouchedPath, ...] = ()
    named: tuple[TouchedPath, ...] = ()
    kinds: frozenset[str] = frozenset()
    """The effects of the call's SQL: ``permissions.sql.KINDS`` and ``network``."""
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    confined: bool = False
    """Whether an available sandbox confines what it runs, although it has no command."""
    reads: bool = False
    """Whether it is code that a sandbox confines to reading."""
    unheld: str = ""
    """Why a tool that declares to only read counts as running code: nothing here keeps it from writing."""
    commands: tuple[ResolvedCommand, ...] = ()
    """The simple commands of a shell command."""
    trouble: str = ""
    """Why ``commands`` may be incomplete; such a command is covered only by its exact text."""
    lack: str = ""
    """Why neither known facts nor rules cover the shell command; ``offer`` is a rule that would."""
    offer: str | None = None
    saves: bool = False
    """Whether a tool that usually reads writes a file: rules about writing that file apply."""
    asks: str = ""
    """Why the call asks in every mode: see ToolFacts."""
    copied: bool = False
    """Whether it only changes files in a copy of the project: see ToolFacts."""
    stays: bool = False
    """Whether it is code that a sandbox without network confines, with nothing risky in its text."""

    @property
    def outside(self) -> bool:
        return any(not seen.inside for seen in self.paths)

    @property
    def unsure(self) -> bool:
        """Whether it is a shell command with parts that are unknown before it runs."""
        unread = any(command.stops or command.takes == "unseen" or None in command.words for command in self.commands)
        return self.tool in SHELL_TOOLS and (bool(self.trouble) or unread)

    def files(self) -> Iterator[Subject]:
        """Yield the file accesses of a call as calls of the file tools, since rules about those apply."""
        if self.saves:
            for seen in self.paths:
                yield Subject("write_file", Effect.WRITE, paths=(seen,), args={"path": seen.shown})
            return
        read = (seen for command in self.commands for seen in (*command.reads, *command.named))
        written = (
            seen
            for command in self.commands
            for seen in (*command.writes, *(() if command.harmless else command.named))
        )
        for seen in _each_once(read):
            yield Subject("read_file", Effect.READ, paths=(seen,), args={"path": seen.shown})
        files = _each_once(written)
        for tool in ("write_file", "edit_file"):
            for seen in files:
                yield Subject(tool, Effect.WRITE, paths=(seen,), args={"path": seen.shown})


@frozen
class Rule:
    """A rule. ``pattern`` None covers every call of the tool; a class such as ``@secret`` covers paths of that
    class."""

    tool: str
    pattern: str | None
    verdict: RuleAnswer
    source: str = ""
    base: Path | None = None
    """The folder that a relative path pattern starts from; by default the workspace's root."""
    terms: Terms = NO_TERMS
    layer: RuleLayer = ""

    @property
    def text(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    @property
    def narrow(self) -> bool:
        """Whether it names a specific target rather than a class or wildcard."""
        pattern = self.pattern or ""
        return pattern.startswith(DOMAIN) or bool(pattern and not set(pattern) & set("*?@"))

    def covers(self, subject: Subject) -> bool:
        """Return whether it covers a call. Strict rules match if any part does, allow rules only if all parts do."""
        if subject.saves and any(map(self.covers, subject.files())):
            return True
        about_files = self.pattern is not None or self.tool in EFFECTS or bool(self.terms.when)
        if subject.commands and self.verdict != "allow" and about_files and any(map(self.covers, subject.files())):
            return True
        if not self.meant(subject):
            return False
        return self._permits(subject) if self.verdict == "allow" else self._catches(subject)

    def meant(self, subject: Subject) -> bool:
        """Return whether it is about the tool and its conditions hold."""
        return self._covers_tool(subject) and self.terms.hold(subject.args, doubt=self.verdict != "allow")

    def _covers_tool(self, subject: Subject) -> bool:
        if self.tool in EFFECTS:
            return EFFECTS[self.tool] is subject.effect
        return fnmatchcase(subject.tool, _plain_tool(self.tool))

    def _permits(self, subject: Subject) -> bool:
        if subject.asks and self.tool != subject.tool:
            return False
        if self.pattern == SANDBOXED:
            return subject.stays
        if subject.command is not None:
            if self.pattern == subject.command and not subject.outside:
                return True
            needed = [command for command in subject.commands if not command.harmless]
            if not needed or subject.trouble or (self.pattern is None and self.tool not in SHELL_TOOLS):
                return False
            return all(permits(self.pattern, command) for command in needed)
        if self.pattern is None:
            return not subject.outside
        if self.pattern in KINDS and subject.kinds:
            return subject.kinds <= {self.pattern, "read"} and not subject.outside
        if self.pattern.startswith(DOMAIN):
            return is_of(subject.target, self.pattern)
        if self.pattern in CLASSES:
            return bool(subject.paths) and all(self._in_class(seen) for seen in subject.paths)
        if subject.paths:
            return all(self._fits(seen, exactly=True) for seen in subject.paths)
        return bool(_glob(self.pattern).fullmatch(subject.target))

    def _catches(self, subject: Subject) -> bool:
        if self.pattern is None:
            return True
        if self.pattern in KINDS and subject.kinds:
            # Anything that is not certainly a read may write.
            return bool(subject.kinds & (KINDS_IN_DOUBT[self.pattern] | {self.pattern}))
        if self.pattern.startswith(DOMAIN):
            return may_be_of(subject.target, self.pattern)
        everything = (*subject.paths, *subject.named)
        if self.pattern in CLASSES:
            return any(self._in_class(seen) for seen in everything)
        if subject.command is not None:
            text = " ".join(subject.command.split())
            if text == " ".join(self.pattern.split()) or fnmatchcase(text, self.pattern):
                return True
            if any(catches(self.pattern, command) for command in subject.commands):
                return True
        if any(self._fits(seen, exactly=False) for seen in everything):
            return True
        if subject.paths or subject.command is not None:
            return False
        return bool(_glob(folded(self.pattern)).fullmatch(folded(subject.target)))

    def _in_class(self, seen: TouchedPath) -> bool:
        match self.pattern:
            case "@secret":
                return seen.secret
            case "@guarded":
                return seen.guarded
            case _:
                return not seen.inside

    def _fits(self, seen: TouchedPath, *, exactly: bool) -> bool:
        pattern = self.pattern or ""
        absolute = seen.path.as_posix()
        if pattern.startswith("~"):
            pattern = Path(pattern).expanduser().as_posix()
        if not exactly:
            pattern, absolute = folded(pattern), folded(absolute)
        if pattern.startswith("/"):
            return bool(_glob(pattern).fullmatch(absolute))
        pattern = pattern.removeprefix("./")
        relative = seen.relative if self.base is None else _below(seen.path, self.base)
        if relative is not None and _glob(pattern).fullmatch(relative if exactly else folded(relative)):
            return True
        if not exactly and any(_glob(pattern).fullmatch(folded(place)) for place in seen.places):
            return True
        return not exactly and pattern.startswith("**/") and bool(_glob(f"/{pattern}").fullmatch(absolute))


def read_rule(text: str, verdict: str, source: str = "", terms: str = "") -> Rule:
    """Parse a rule, with its terms as JSON.

    Raises:
        UsageError: the rule is invalid or can't be kept; says where, what was expected and what to write.
    """
    where = f"{source}: " if source else ""

    def refuse(why: str, hint: str = _HINT) -> UsageError:
        return UsageError(f"{where}permission rule {text!r}: {why}.", hint)

    if verdict not in {"allow", "ask", "deny"}:
        raise refuse(f"expected allow, ask or deny, got {verdict!r}")
    if not text.isprintable() or not text.strip() or len(text) > LONGEST:
        raise refuse(f"expected one line of printable text, at most {LONGEST} characters")
    name, bracket, rest = text.partition("(")
    if bracket and (not rest.endswith(")") or not rest[:-1].strip()):
        raise refuse("expected a pattern between ( and )")
    pattern = rest[:-1] if bracket else None
    if name not in EFFECTS and not _TOOL.fullmatch(name):
        raise refuse(f"expected the name of a tool before (, or one of {', '.join(EFFECTS)}")
    if pattern == SANDBOXED and not (name in CODE_TOOLS and verdict == "allow"):
        raise refuse(f"{SANDBOXED} is for allow rules about {', '.join(CODE_TOOLS)}")
    if pattern and pattern.startswith("@") and pattern not in {*CLASSES, SANDBOXED}:
        raise refuse(f"expected one of {', '.join(CLASSES)} after (")
    if pattern and pattern.startswith(DOMAIN) and (problem := domain_problem(pattern)):
        raise refuse(problem, "Such as web_fetch(domain:docs.python.org), which covers its subdomains too.")
    if name in EVENTS:
        raise refuse(f"{name} is not available yet: rules ask about tool calls only", "Remove the rule.")
    if pattern and (problem := _wildcards_problem(name, pattern)):
        raise refuse(problem, "Correct the pattern: a set reads [a-z], or [!a-z] for all other characters.")
    if problem := _command_problem(name, pattern, verdict):
        hint = f"Name one text word for word, {name}(print(1)), or {name}({SANDBOXED})."
        raise refuse(problem, hint if name in CODE_TOOLS else f"Such as {name}(git status) or {name}(git diff:*).")
    try:
        said = read_terms(terms)
    except Misfit as error:
        raise refuse(str(error), "A rule with conditions has rule, when, timeout and on_timeout.") from error
    if said.timeout is not None and verdict != "ask":
        raise refuse(f"timeout: only ask rules wait for an answer, this one is {verdict}", "Leave it out.")
    return Rule(name, pattern, cast("RuleAnswer", verdict), source, terms=said)


def widened(text: str, verdict: str, source: str = "") -> Rule | None:
    """Return a rule for every call of the tool, to replace an unreadable strict rule; None for allow rules or without a
    tool."""
    name = _TOOL.match(text.strip().removeprefix("@"))
    if name is None or verdict not in {"ask", "deny"}:
        return None
    tool = f"@{name[0]}" if f"@{name[0]}" in EFFECTS and text.strip().startswith("@") else name[0]
    return Rule(tool, None, cast("RuleAnswer", verdict), source)


def _wildcards_problem(name: str, pattern: str) -> str:
    """Return why the wildcards of a pattern are invalid. Strict rules also compare patterns in lower case."""
    commands = name in (*COMMAND_TOOLS, OUTER, "@execute")
    if commands and not set(pattern.removesuffix(":*").removesuffix(" *")) & set("*?"):
        # Literal words of a command.
        return ""
    return wildcard_problem(pattern) or wildcard_problem(folded(pattern))


def _plain_tool(name: str) -> str:
    """Return the tool's name: ``mcp.github.create_issue`` is ``mcp__github__create_issue``. A server alone covers all
    its tools."""
    if not name.startswith("mcp."):
        return name
    parts = name.split(".", 2)
    return "__".join(parts if len(parts) > 2 or parts[1] == "*" else [*parts, "*"])


def _command_problem(name: str, pattern: str | None, verdict: str) -> str:
    """Return why a rule can't apply to commands; empty if it can."""
    if name == OUTER and verdict == "allow" and (pattern is None or pattern in ANY):
        return "it would let every command leave the sandbox"
    if name not in (*COMMAND_TOOLS, OUTER, "@execute"):
        return "prefixes (:*) are only for commands" if pattern and pattern.endswith(":*") else ""
    if name in SHELL_TOOLS or name == OUTER:
        return pattern_problem(pattern, verdict) if pattern else ""
    if pattern and "*" in pattern:
        return "patterns for code are not supported"
    if pattern is None and verdict == "allow":
        return "it would allow all code"
    return ""


def read_line(line: RuleLine) -> Rule:
    """Parse the rule of one line. Raises UsageError as ``read_rule`` does."""
    rule = read_rule(line.rule, line.verdict, line.source, line.terms)
    if line.layer == "project" and rule.terms.on_timeout == "allow":
        why = "on_timeout: a rule of a project can't allow on timeout"
        raise UsageError(f"{line.source}: permission rule {line.rule!r}: {why}.", "Use deny or escalate.")
    return replace(rule, layer=line.layer)


def read_rules(lines: Iterable[RuleLine]) -> tuple[list[Rule], list[str]]:
    """Parse ``lines``. Return the rules, and a problem for each invalid line, one per line.

    An invalid strict rule covers every call of its tool.
    """
    rules: list[Rule] = []
    problems: list[str] = []
    for line in lines:
        try:
            rules.append(read_line(line))
        except UsageError as error:
            wide = widened(line.rule, line.verdict, line.source)
            rules += [replace(wide, layer=line.layer)] if wide else []
            problems.append(f"{error.with_hint}{until_corrected(wide)}")
    return rules, problems


def until_corrected(wide: Rule | None) -> str:
    """Return a sentence about the interim effect of an unreadable rule; empty if it has none."""
    if wide is None:
        return ""
    return f" Until then the app {'asks about' if wide.verdict == 'ask' else 'denies'} every call of {wide.tool}."


def literal(text: str) -> str:
    """Return ``text`` as a pattern that matches only itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _each_once(files: Iterable[TouchedPath]) -> list[TouchedPath]:
    """Return ``files`` without duplicates; files that were named twice are the same object."""
    return list({id(seen): seen for seen in files}.values())


def _below(path: Path, base: Path) -> str | None:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else None


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a path pattern: ``**`` any folders, ``*`` and ``?`` within a name, ``[ab]`` one of them; a trailing ``/``
    all below."""
    pattern = pattern + "**" if pattern.endswith("/") else pattern
    out: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        close = pattern.find("]", index + 2 + pattern.startswith("[!", index)) if char == "[" else -1
        if pattern.startswith("**/", index):
            out.append("(?:.*/)?")
            index += 3
        elif pattern.startswith("**", index):
            out.append(".*")
            index += 2
        elif close > 0:
            inner = pattern[index + 1 : close].replace("\\", r"\\").replace("[", r"\[")
            out.append(f"[{'^' + inner[1:] if inner[0] == '!' else inner}]")
            index = close + 1
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
            index += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        # Only words of a command get here: such patterns for files are refused.
        return re.compile(re.escape(pattern), re.DOTALL)
