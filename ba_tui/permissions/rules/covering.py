"""Whether rules and what is known cover a whole shell command, what is lacking, and which rule to offer for that.

What a command touches is found in ``judgement``; the order of verdicts stands in ``policy``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from ba_tui.core.questions import Risk
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.rule_words import joined_rules
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import TEMPORARY, TouchedPath
from ba_tui.permissions.rules.command_rules import empties, names_all, permits
from ba_tui.permissions.rules.rule import SHELL_TOOLS, Rule, Subject
from ba_tui.permissions.shell.command_text import LONGEST_RULE, findings, rememberable
from ba_tui.permissions.shell.programs.known_commands import known
from ba_tui.permissions.shell.resolved_command import GROUPED, FolderRead, ResolvedCommand
from ba_tui.resources import user_home

MOST_OFFERED = 3
"""Rules that one answer may give; the whole command is offered where more would be needed."""
_SYSTEM = regex(
    r"/(?:usr|lib|lib32|lib64|bin|sbin|sys/fs/cgroup|sys/devices/system)(?:/.*)?"
    r"|/etc/(?:os-release|lsb-release|debian_version|alpine-release|redhat-release|fedora-release|issue|hostname|timezone"
    r"|localtime|shells|services|protocols|mime\.types)"
    r"|/proc/(?:cpuinfo|meminfo|version|loadavg|uptime|stat|filesystems|mounts|self/(?:status|mounts|cgroup|limits))",
    re.DOTALL,
)
"""Files that tell what a machine is and which programs it has."""
_SYSTEM_NAMES = regex(r"/(?:usr|lib|lib32|lib64|bin|sbin|etc|opt|var(?!/tmp/)|boot|sys|proc|dev)(?:/.*)?", re.DOTALL)
"""Folders of the system, whose names of files tell nothing of the user."""
_RECURSIVE = regex(r"-[^-].*[RT].*|-[RT]|--rec.*|--tree")
_DELETING = frozenset({"rm", "rmdir", "unlink", "shred", "srm", "trash"})
_CREATING = frozenset({"mkdir", "mkfifo", "mknod"})
_TARGET_LAST = frozenset({"cp", "mv", "ln", "install", "ginstall"})
_RIGHTS = frozenset({"chmod", "chown", "chgrp", "chattr", "setfacl"})
_QUOTED = regex(r"`[^`]*`")
_WRITING = regex(
    r"\b(?:writes?|deletes|renames|makes a folder|may change something"
    r"|changes (?!which )(?:\w+ ){0,3}(?:files|branches|tags|references?|settings|text))\b"
)


@frozen
class Lack:
    """Why a simple command asks. ``words``: a rule for it could cover it, if it is known before it runs."""

    command: ResolvedCommand | None
    why: str
    words: bool = True


@frozen
class Covered:
    """``by``: the rules that cover what does more than read. Without any, and without ``lacks``, it only reads."""

    by: tuple[Rule, ...] = ()
    lacks: tuple[Lack, ...] = ()
    masked: tuple[Path, ...] = ()
    """Files that rules keep from what only reads and goes through folders: the sandbox hides them from it."""

    @property
    def reading(self) -> bool:
        """Whether it may run because it only reads: the sandbox then runs it so that it can do nothing else."""
        return not self.by and not self.lacks


@frozen
class KeptFiles:
    """Files that rules keep; ``why`` that asks where they can't be hidden, empty for none."""

    files: tuple[Path, ...] = ()
    why: str = ""


@frozen
class FileCover:
    """Whether a file may be read, and written, as tools may; ``shown``: a path for people; ``kept``: which of the files
    that are gone through rules keep; ``unheld``: why no sandbox holds what only reads, so that it
    changes nothing and sees no secret; empty when one does."""

    readable: Callable[[TouchedPath], bool]
    writable: Callable[[TouchedPath], bool]
    shown: Callable[[TouchedPath], str]
    kept: Callable[[FolderRead], KeptFiles]
    secret: Callable[[FolderRead], str]
    unheld: Callable[[], str]


def cover(subject: Subject, allows: Sequence[Rule], files: FileCover) -> Covered:
    """``allows`` are the allow rules for the tool whose conditions hold.

    What a rule allows runs with more rights than what only reads, and so does all that stands in one command with it:
    nothing holds the rest then, so that it must be plain.
    """
    if whole := next((rule for rule in allows if rule.pattern == subject.command), None):
        return Covered((whole,))
    if subject.trouble:
        return Covered(lacks=(Lack(None, subject.trouble),))
    # Who allows every tool has not thought of every command; who names the shell alone has.
    allows = [rule for rule in allows if rule.pattern is not None or rule.tool in SHELL_TOOLS]
    ruled = [(command, _rule_for(command, allows)) for command in subject.commands]
    by = {rule.text: rule for command, rule in ruled if rule and not (command.harmless and rule.pattern is None)}
    # From a command of which no part may write, a sandbox can hide files, whichever parts of it rules cover.
    reads = all(command.harmless and not command.writes for command in subject.commands)
    beside = _Beside(not by, reads)
    lacks = [lack for command, rule in ruled if (lack := _lack(command, rule, files, beside))]
    if not subject.commands and not subject.trouble and not (subject.command or "").strip():
        lacks.append(Lack(None, "it holds no command"))
    gone = (below for command in subject.commands for below in command.below) if reads and not lacks else ()
    masked = dict.fromkeys(path for below in gone for path in files.kept(below).files)
    return Covered(tuple(by.values()), tuple(lacks), tuple(sorted(masked)))


def _rule_for(command: ResolvedCommand, allows: Sequence[Rule]) -> Rule | None:
    """The rule that covers ``command`` as to its words, rather one that says all of them."""
    exact = next((rule for rule in allows if names_all(rule.pattern, command)), None)
    return exact or next((rule for rule in allows if permits(rule.pattern, command)), None)


@frozen
class _Beside:
    """What holds for a whole command: ``alone``, that no rule covers a part of it; ``reads``, that no part may write,
    so that a sandbox can hide files from it."""

    alone: bool
    reads: bool

    def held(self, command: ResolvedCommand) -> bool:
        """Whether nothing in the whole runs with more rights than ``command``, which no rule covers."""
        return self.alone or (self.reads and command.loose != GROUPED)


def _lack(command: ResolvedCommand, rule: Rule | None, files: FileCover, beside: _Beside) -> Lack | None:
    """What is lacking for ``command``, which ``rule`` covers as to its words."""
    if rule is not None and names_all(rule.pattern, command):
        return None
    if command.stops:
        return Lack(command, command.why)
    changing = next((seen for seen in command.writes if not files.writable(seen)), None)
    if rule is None and not command.harmless and not (command.writes and changing is not None and command.known):
        return Lack(command, command.why)
    if changing is not None and not (rule is not None and empties(command)):
        return Lack(command, _changes(command, changing, files), words=False)
    if rule is None and not command.harmless:
        return Lack(command, command.why)
    if (
        rule is None
        and command.loose
        and (why := files.unheld() if beside.held(command) else "not together with a command that a rule allows")
    ):
        return Lack(command, f"{command.loose}, and {why}")
    return _reached(command, files, rule is None and beside.held(command), beside.reads)


def _reached(command: ResolvedCommand, files: FileCover, system: bool, reads: bool) -> Lack | None:
    """What ``command`` reads that it may not; ``system``: files that are the same everywhere are fine in a sandbox;
    ``reads``: no part of the whole may write."""
    outside = [seen for seen in (*command.reads, *command.named) if not seen.inside and not files.readable(seen)]
    if system and outside and not files.unheld():
        names = command.lists and command.harmless
        outside = [
            seen
            for seen in outside
            if not (_SYSTEM.fullmatch(str(seen.path)) or (names and _listable(seen.path, command)))
        ]
    away = next(iter(outside), None)
    if away is not None:
        return Lack(
            command, f"`{_program(command)}` accesses {files.shown(away)}, which is outside the workspace", words=False
        )
    why = next(
        (
            kept.why
            for below in command.below
            if (kept := files.kept(below)).why and not (reads and kept.files and not files.unheld())
        ),
        "",
    )
    if not why and command.below and files.unheld():
        why = next((why for below in command.below if (why := files.secret(below))), "")
    return Lack(command, f"`{_program(command)}` would read {why}", words=False) if why else None


def _listable(path: Path, command: ResolvedCommand) -> bool:
    """Whether names and figures of files below ``path`` may be shown where a sandbox holds what reads: those of the
    system, and what a command sees in place of the home folder and of the folders for temporary files."""
    if path == Path("/"):
        return _program(command) not in {"tree", "du"} and not any(
            map(_RECURSIVE.fullmatch, filter(None, command.words))
        )
    return bool(_SYSTEM_NAMES.fullmatch(str(path))) or path in stand_ins()


def stand_ins() -> tuple[Path, ...]:
    """Folders in whose place a command in the sandbox sees private or nearly empty ones."""
    home = user_home()
    return (*TEMPORARY, *(each for each in (home, home and home.parent) if each and each != Path("/")))


def _changes(command: ResolvedCommand, changing: TouchedPath, files: FileCover) -> str:
    """What ``command`` does to a file that it may not write."""
    program = _program(command)
    if program in _RIGHTS:
        return command.why
    others = [seen for seen in command.writes if not files.writable(seen)]
    # The last operand is where these put the others.
    path = files.shown(others[-1] if program in _TARGET_LAST else changing)
    more = f" and {len(others) - 1} more" if program in _DELETING and len(others) > 1 else ""
    verb = "deletes" if program in _DELETING else "creates" if program in _CREATING else "writes"
    return f"`{program}` {verb} {path}{more}"


def _program(command: ResolvedCommand) -> str:
    return (command.plain or command.words or ("it",))[0] or "it"


def offered(subject: Subject, lacks: Sequence[Lack]) -> str | None:
    """Return the narrowest rules that make sense for what is lacking, one a line; None where nothing should be
    remembered."""
    written = subject.command or ""
    if subject.trouble or any(
        lack.command is None or lack.command.stops or None in lack.command.words for lack in lacks
    ):
        return None
    if any(lack.command and lack.command.takes == "unseen" and not _prefix(lack.command) for lack in lacks):
        return None
    if any("destructive" in command.effects for command in subject.commands):
        return None
    whole = f"{subject.tool}({written})" if rememberable(written) else None
    texts = [_rule_text(lack.command) if lack.words and lack.command else "" for lack in lacks]
    rules = tuple(dict.fromkeys(f"{subject.tool}({text})" for text in texts if text))
    return joined_rules(rules) if rules and all(texts) and len(rules) <= MOST_OFFERED else whole


def _rule_text(command: ResolvedCommand) -> str:
    """``git add:*`` for what is known to be fine so, else every word."""
    if command.outside or command.writes:
        return ""
    if head := _prefix(command):
        return head
    text = "" if command.takes else shlex.join(word for word in command.words if word is not None)
    return text if rememberable(text) and len(text) <= LONGEST_RULE else ""


def _prefix(command: ResolvedCommand) -> str:
    """``git add:*`` where any words may follow."""
    words = [word for word in command.words if word is not None]
    for count in (3, 2, 1):
        head = tuple(words[:count])
        known_so = len(head) == count and any(_fits(head, pattern) for pattern in known().offers)
        if known_so and not any(surplus.binding and surplus.at >= count for surplus in command.surplus):
            return f"{shlex.join(head)}:*"
    return ""


def _fits(head: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(head) == len(pattern) and all(
        word == want or (want == "*" and _names_target(word)) for word, want in zip(head, pattern, strict=True)
    )


def _names_target(word: str) -> bool:
    """Whether ``word`` can only be the name of a script or target: neither an option nor a path, nor a program that
    would run whatever follows it."""
    plain = word.replace("-", "").replace(":", "").replace("_", "").isalnum() and word[0] != "-"
    return plain and word not in known().scripts and word not in known().wrappers


def risks(subject: Subject) -> tuple[Risk, ...]:
    """What a person should know before allowing the command, from its simple commands."""
    harmful = [command for command in subject.commands if not command.harmless]
    effects = frozenset[str]().union(*(command.effects for command in harmful))
    # What is said of a command is of its program as a whole; its words tell more of this very call.
    told = [findings(" ".join(word or "" for word in command.words)) for command in harmful]
    writes, network, destroys = (any(each[at] for each in told) for at in range(3))
    # An option that made it ask says itself what it does; the words in backticks are those of the command.
    why = (_QUOTED.sub("", surplus.why) for command in harmful for surplus in command.surplus)
    writes = writes or any(_WRITING.search(each) for each in why)
    destroys = destroys or "destructive" in effects
    found: list[tuple[bool, Risk]] = [
        (True, "runs a command"),
        (
            writes or destroys or bool(effects & {"outs"}) or any(command.writes for command in subject.commands),
            "writes",
        ),
        (network or "network" in effects, "network"),
        (any(command.outside for command in subject.commands), "outside the workspace"),
        (destroys, "destructive"),
    ]
    return tuple(risk for holds, risk in found if holds)
