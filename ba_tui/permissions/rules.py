"""Rules: ``tool(pattern)`` with a verdict, checked when they are read, and what it means that one covers a call.

The order of verdicts and what the modes do stands in ``policy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.session import RuleLine
from ba_tui.core.tool import Effect
from ba_tui.permissions.paths import folded

Verdict: TypeAlias = Literal["allow", "ask", "deny"]

COMMAND_TOOLS = ("shell", "python")
CODE_TOOLS = ("python",)
"""Those whose commands are Python code."""
CLASSES = ("@secret", "@guarded", "@outside")
EFFECTS = {f"@{effect.value}": effect for effect in Effect}
LONGEST = 500
_TOOL = re.compile(r"[A-Za-z0-9_.*-]+")
_HINT = "Rules read TOOL or TOOL(PATTERN), such as edit_file(src/**) or shell(git status)."


@dataclass(frozen=True, slots=True)
class Seen:
    """One path of a call. ``relative``: from the root; ``places``: from each folder of the workspace it lies in."""

    path: Path
    relative: str | None
    places: tuple[str, ...]
    inside: bool
    secret: bool
    guarded: bool


@dataclass(frozen=True, slots=True)
class Subject:
    """A call as rules see it. ``command`` is the verbatim text of a tool that runs commands, else None.

    ``named`` are paths that words of the command may name; they count for stricter verdicts only.
    """

    tool: str
    effect: Effect
    target: str = ""
    command: str | None = None
    paths: tuple[Seen, ...] = ()
    named: tuple[Seen, ...] = ()

    @property
    def outside(self) -> bool:
        return any(not seen.inside for seen in self.paths)


@dataclass(frozen=True, slots=True)
class Rule:
    """``pattern`` None: every call of the tool. A rule of class ``@secret`` (…) covers paths of that kind."""

    tool: str
    pattern: str | None
    verdict: Verdict
    source: str = ""
    base: Path | None = None
    """The folder that a relative path pattern starts from; the workspace's root by default."""

    @property
    def text(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"

    def covers(self, subject: Subject) -> bool:
        """Strict rules cover generously, allowing ones exactly: everything a call touches must be meant."""
        if not self._covers_tool(subject):
            return False
        return self._permits(subject) if self.verdict == "allow" else self._catches(subject)

    def _covers_tool(self, subject: Subject) -> bool:
        if self.tool in EFFECTS:
            return EFFECTS[self.tool] is subject.effect
        return fnmatchcase(subject.tool, self.tool)

    def _permits(self, subject: Subject) -> bool:
        if subject.command is not None:
            return self.pattern == subject.command and not subject.outside
        if self.pattern is None:
            return not subject.outside
        if self.pattern in CLASSES:
            return bool(subject.paths) and all(self._in_class(seen) for seen in subject.paths)
        if subject.paths:
            return all(self._fits(seen, exactly=True) for seen in subject.paths)
        return bool(_glob(self.pattern).fullmatch(subject.target))

    def _catches(self, subject: Subject) -> bool:
        if self.pattern is None:
            return True
        everything = (*subject.paths, *subject.named)
        if self.pattern in CLASSES:
            return any(self._in_class(seen) for seen in everything)
        if subject.command is not None:
            text = " ".join(subject.command.split())
            if text == " ".join(self.pattern.split()) or fnmatchcase(text, self.pattern):
                return True
        if any(self._fits(seen, exactly=False) for seen in everything):
            return True
        if subject.paths or subject.command is not None:
            return False
        return bool(_glob(folded(self.pattern)).fullmatch(folded(subject.target)))

    def _in_class(self, seen: Seen) -> bool:
        match self.pattern:
            case "@secret":
                return seen.secret
            case "@guarded":
                return seen.guarded
            case _:
                return not seen.inside

    def _fits(self, seen: Seen, *, exactly: bool) -> bool:
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


def read_rule(text: str, verdict: str, source: str = "") -> Rule:
    """The rule that ``text`` says.

    Raises:
        UsageError: it is not one, or one that can't be kept; says where, what was expected and what to write.
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
    if pattern and pattern.startswith("@") and pattern not in CLASSES:
        raise refuse(f"expected one of {', '.join(CLASSES)} after (")
    if problem := _command_problem(name, pattern, verdict):
        example = "print(1)" if name in CODE_TOOLS else "git status"
        raise refuse(problem, f"Such a rule is one whole command, word for word: {name}({example}).")
    return Rule(name, pattern, cast("Verdict", verdict), source)


def _command_problem(name: str, pattern: str | None, verdict: str) -> str:
    """Why a rule can't be about commands. Half a command can't be judged as long as nothing parses the shell."""
    if pattern and pattern.endswith(":*"):
        return "prefixes of commands (:*) are not supported"
    if name not in COMMAND_TOOLS and name != "@execute":
        return ""
    if pattern and "*" in pattern:
        return "patterns for commands are not supported"
    if pattern is None and verdict == "allow":
        return "it would allow every command; each one asks unless it was allowed word for word"
    return ""


def read_rules(lines: Iterable[RuleLine]) -> tuple[list[Rule], list[str]]:
    """The rules that ``lines`` say, and a line for each that says none."""
    rules: list[Rule] = []
    problems: list[str] = []
    for line in lines:
        try:
            rules.append(read_rule(line.rule, line.verdict, line.source))
        except UsageError as error:
            problems.append(f"{error} {error.hint}")
    return rules, problems


def literal(text: str) -> str:
    """``text`` as a pattern that fits only itself."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _below(path: Path, base: Path) -> str | None:
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else None


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """``**`` any folders, ``*`` and ``?`` within a name, ``[ab]`` one of them; a trailing ``/`` all below."""
    pattern = pattern + "**" if pattern.endswith("/") else pattern
    out: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        close = pattern.find("]", index + 2) if char == "[" else -1
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
        return re.compile(re.escape(pattern), re.DOTALL)
