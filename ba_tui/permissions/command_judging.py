"""Judges a shell command: what rules and known facts cover, which rule to offer, and in which profile it runs.

Loaded with the first command, because it needs the shell grammar. ``shell.judgement`` finds what a command touches,
``policy`` orders the verdicts, ``core.effects`` explains the profiles.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from ba_tui.core.effects import HistoryAccess, Profile
from ba_tui.core.ports.permissions import joined_rules
from ba_tui.core.questions import Risk
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Effect
from ba_tui.core.values import frozen
from ba_tui.permissions.conditions import DOMAIN, NO_TERMS, empties, names_all, permits
from ba_tui.permissions.paths import TEMPORARY, TouchedPath, Workspace
from ba_tui.permissions.rule import CLASSES, OUTER, SHELL_TOOLS, Rule, Subject
from ba_tui.permissions.sandbox.git_folders import holds_git, is_in_git
from ba_tui.permissions.sandbox.git_settings import exposed, stored_secrets
from ba_tui.permissions.shell.command_text import LONGEST_RULE, findings, rememberable
from ba_tui.permissions.shell.judgement import resolve_script
from ba_tui.permissions.shell.known_commands import known
from ba_tui.permissions.shell.simple_commands import GROUPED, FolderRead, ResolvedCommand
from ba_tui.permissions.shell.witness import folder_after, links
from ba_tui.permissions.shell.word_paths import MOST_LOOKED_AT, See, has_several_names, secrets_in
from ba_tui.permissions.sql import classify
from ba_tui.resources import user_home

__all__ = [
    "FileCover", "ProfileChoice", "alone", "classify", "cover", "exposed", "folder_after", "hold", "leave", "links",
    "offered", "outer_offer", "program", "resolve_script", "risks", "seen_by_git", "stored_secrets",
]  # fmt: skip
MOST_OFFERED = 3
"""Rules that one answer may give; if more are needed, the whole command is offered."""
_SYSTEM = regex(
    r"/(?:usr|lib|lib32|lib64|bin|sbin|sys/fs/cgroup|sys/devices/system)(?:/.*)?"
    r"|/etc/(?:os-release|lsb-release|debian_version|alpine-release|redhat-release|fedora-release|issue|hostname|timezone"
    r"|localtime|shells|services|protocols|mime\.types)"
    r"|/proc/(?:cpuinfo|meminfo|version|loadavg|uptime|stat|filesystems|mounts|self/(?:status|mounts|cgroup|limits))",
    re.DOTALL,
)
"""Files that identify the machine and its programs."""
_SYSTEM_NAMES = regex(r"/(?:usr|lib|lib32|lib64|bin|sbin|etc|opt|var(?!/tmp/)|boot|sys|proc|dev)(?:/.*)?", re.DOTALL)
"""System folders, whose file names reveal nothing about the user."""
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
    """Why a simple command asks. ``words``: a rule for its words could cover it, if they are known before it runs."""

    command: ResolvedCommand | None
    why: str
    words: bool = True


@frozen
class Coverage:
    """``by``: the rules that cover whatever does more than read. Without rules and ``lacks``, the command only
    reads."""

    by: tuple[Rule, ...] = ()
    lacks: tuple[Lack, ...] = ()
    masked: tuple[Path, ...] = ()
    """Files that rules protect from a command that reads whole folders: the sandbox hides them."""

    @property
    def reading(self) -> bool:
        """Whether the command may run because it only reads: the sandbox then confines it to reading."""
        return not self.by and not self.lacks


@frozen
class KeptFiles:
    """Files that rules protect. ``why``: the reason to ask if they can't be hidden; empty for none."""

    files: tuple[Path, ...] = ()
    why: str = ""


class FileCover:
    """Whether a file may be read and written as by tools.

    ``rules``: those that may protect files. ``allows`` returns whether a rule allows a tool's call, ``see`` what rules
    know about a path, ``unheld`` why read-only commands can't be confined; empty if they can.
    """

    def __init__(
        self,
        workspace: Workspace,
        rules: Sequence[Rule],
        allows: Callable[[Subject], bool],
        see: See,
        unheld: Callable[[], str],
    ) -> None:
        self._workspace = workspace
        self._allows = allows
        self.kept, self.secret, self.unheld = keeper(workspace, rules), secrets_in(see), unheld

    def readable(self, seen: TouchedPath) -> bool:
        return self._allows(Subject("read_file", Effect.READ, paths=(seen,)))

    def writable(self, seen: TouchedPath) -> bool:
        return self._allows(Subject("write_file", Effect.WRITE, paths=(seen,)))

    def shown(self, seen: TouchedPath) -> str:
        return self._workspace.shown(seen.path)


def cover(subject: Subject, allows: Sequence[Rule], files: FileCover) -> Coverage:
    """Return what covers a shell command. ``allows``: the allow rules for the tool whose conditions hold.

    A command that a rule allows runs with more rights than one that only reads. So does everything else in the same
    command, which therefore must be safe without a sandbox.
    """
    if whole := next((rule for rule in allows if rule.pattern == subject.command), None):
        return Coverage((whole,))
    if subject.trouble:
        return Coverage(lacks=(Lack(None, subject.trouble),))
    # A rule for every tool does not mean every command; a rule for the shell alone does.
    allows = [rule for rule in allows if rule.pattern is not None or rule.tool in SHELL_TOOLS]
    ruled = [(command, _rule_for(command, allows)) for command in subject.commands]
    by = {rule.text: rule for command, rule in ruled if rule and not (command.harmless and rule.pattern is None)}
    # If no part of a command may write, a sandbox can hide files from all of it.
    reads = all(command.harmless and not command.writes for command in subject.commands)
    beside = _WholeCommand(not by, reads)
    lacks = [lack for command, rule in ruled if (lack := _lack(command, rule, files, beside))]
    if not subject.commands and not (subject.command or "").strip():
        lacks.append(Lack(None, "it contains no command"))
    gone = (below for command in subject.commands for below in command.below) if reads and not lacks else ()
    masked = dict.fromkeys(path for below in gone for path in files.kept(below).files)
    return Coverage(tuple(by.values()), tuple(lacks), tuple(sorted(masked)))


def _rule_for(command: ResolvedCommand, allows: Sequence[Rule]) -> Rule | None:
    """Return the rule that covers the words of ``command``, preferably one that states all of them."""
    exact = next((rule for rule in allows if names_all(rule.pattern, command)), None)
    return exact or next((rule for rule in allows if permits(rule.pattern, command)), None)


@frozen
class _WholeCommand:
    """Facts about a whole command. ``alone``: no rule covers a part of it. ``reads``: no part may write, so that a
    sandbox can hide files from it."""

    alone: bool
    reads: bool

    def held(self, command: ResolvedCommand) -> bool:
        """Return whether nothing in the whole command runs with more rights than ``command``, which no rule covers."""
        return self.alone or (self.reads and command.loose != GROUPED)


def _lack(command: ResolvedCommand, rule: Rule | None, files: FileCover, beside: _WholeCommand) -> Lack | None:
    """Return what is lacking for ``command``, whose words ``rule`` covers."""
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
    """Return a file that ``command`` may not read. ``system``: system files are allowed in a sandbox. ``reads``: no
    part of the whole command may write."""
    outside = [seen for seen in (*command.reads, *command.named) if not seen.inside and not files.readable(seen)]
    if system and outside and not files.unheld():
        names = command.lists and command.harmless
        outside = [
            seen
            for seen in outside
            if not (_SYSTEM.fullmatch(str(seen.path)) or (names and _listable(seen.path, command)))
        ]
    if outside:
        why = f"accesses {files.shown(outside[0])}, which is outside the workspace"
        return Lack(command, f"`{_written(command)}` {why}", words=False)
    kept = map(files.kept, command.below)
    why = next((each.why for each in kept if each.why and not (reads and each.files and not files.unheld())), "")
    if not why and command.below and files.unheld():
        why = next((why for below in command.below if (why := files.secret(below))), "")
    return Lack(command, f"`{_written(command)}` would read {why}", words=False) if why else None


def _listable(path: Path, command: ResolvedCommand) -> bool:
    """Return whether file names and sizes below ``path`` may be shown in a read-only sandbox.

    That holds for system folders, and for the stand-ins of the home and temporary folders.
    """
    if path == Path("/"):
        deep = any(map(_RECURSIVE.fullmatch, filter(None, command.words)))
        return _written(command) not in {"tree", "du"} and not deep
    return bool(_SYSTEM_NAMES.fullmatch(str(path))) or path in stand_ins()


def stand_ins() -> tuple[Path, ...]:
    """Return folders that the sandbox replaces with private or nearly empty ones."""
    home = user_home()
    return (*TEMPORARY, *(each for each in (home, home and home.parent) if each and each != Path("/")))


def _changes(command: ResolvedCommand, changing: TouchedPath, files: FileCover) -> str:
    """Return what ``command`` does to a file that it may not write."""
    name = _written(command)
    if name in _RIGHTS:
        return command.why
    others = [seen for seen in command.writes if not files.writable(seen)]
    # The last operand is the target of these programs.
    path = files.shown(others[-1] if name in _TARGET_LAST else changing)
    more = f" and {len(others) - 1} more" if name in _DELETING and len(others) > 1 else ""
    verb = "deletes" if name in _DELETING else "creates" if name in _CREATING else "writes"
    return f"`{name}` {verb} {path}{more}"


def _written(command: ResolvedCommand) -> str:
    """Return the name of a command's program as written."""
    return (command.plain or command.words or ("it",))[0] or "it"


def offered(subject: Subject, lacks: Sequence[Lack]) -> str | None:
    """Return the narrowest useful rules for what is lacking, one per line; None if nothing should be remembered."""
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
    """Return ``git add:*`` for commands known to be safe so, otherwise every word."""
    if command.outside or command.writes:
        return ""
    if head := _prefix(command):
        return head
    text = "" if command.takes else shlex.join(word for word in command.words if word is not None)
    return text if rememberable(text) and len(text) <= LONGEST_RULE else ""


def _prefix(command: ResolvedCommand) -> str:
    """Return ``git add:*`` if any further words are safe; empty otherwise."""
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
    """Return whether ``word`` can only name a script or target: no option, no path, no program that runs others."""
    plain = word.replace("-", "").replace(":", "").replace("_", "").isalnum() and word[0] != "-"
    return plain and word not in known().scripts and word not in known().wrappers


def risks(subject: Subject) -> tuple[Risk, ...]:
    """Return what the user should know before allowing the command, from its simple commands."""
    harmful = [command for command in subject.commands if not command.harmless]
    effects = frozenset[str]().union(*(command.effects for command in harmful))
    # The known effects belong to the program in general; the words describe this call.
    told = [findings(" ".join(word or "" for word in command.words)) for command in harmful]
    writes, network, destroys = (any(each[at] for each in told) for at in range(3))
    # The reason describes the option's effect; text in backticks is the command itself.
    why = (_QUOTED.sub("", surplus.why) for command in harmful for surplus in command.surplus)
    writes = writes or any(_WRITING.search(each) for each in why)
    destroys = destroys or "destructive" in effects
    writes = writes or destroys or "outs" in effects or any(command.writes for command in subject.commands)
    found: list[tuple[bool, Risk]] = [
        (True, "runs a command"),
        (writes, "writes"),
        (network or "network" in effects, "network"),
        (any(command.outside for command in subject.commands), "outside the workspace"),
        (destroys, "destructive"),
    ]
    return tuple(risk for holds, risk in found if holds)


MOST_KEPT = 100
"""Files that may be hidden from one command because of rules; each one costs time."""


def keeper(workspace: Workspace, rules: Sequence[Rule]) -> Callable[[FolderRead], KeptFiles]:
    """Return a function that finds protected files below a folder.

    It reads the disk only if a rule names files, and once per folder.
    """
    strict = [
        rule
        for rule in rules
        if rule.verdict != "allow"
        and (rule.pattern or rule.terms.when)
        and rule.pattern not in CLASSES
        and not (rule.pattern or "").startswith(DOMAIN)
        and replace(rule, terms=NO_TERMS).meant(Subject("read_file", Effect.READ))
    ]

    @cache
    def kept(below: FolderRead) -> KeptFiles:
        found, why = list[Path](), ""
        for count, path in enumerate(_files(below)) if strict else ():
            if count > MOST_LOOKED_AT:
                return KeptFiles(why="more files than ba can check")
            places = workspace.places(path)
            seen = TouchedPath(path, workspace.relative(path), places, bool(places), secret=False, guarded=False)
            subject = Subject("read_file", Effect.READ, paths=(seen,), args={"path": seen.shown})
            if rule := next((rule for rule in strict if rule.covers(subject)), None):
                found.append(path)
                why = why or f"{workspace.shown(path)}, which is covered by the rule {rule.text}"
                # Links and files with several names can't be hidden reliably.
                if len(found) > MOST_KEPT or path.is_symlink() or has_several_names(path):
                    return KeptFiles(why=why)
        return KeptFiles(tuple(found), why)

    return kept


def _files(below: FolderRead) -> Iterator[Path]:
    names = [name.lower().rsplit("/", 1)[-1] for name in below.names]
    if below.folder.is_file():
        yield below.folder
    for folder, folders, files in os.walk(below.folder):
        if not below.hidden and not names:
            folders[:] = [each for each in folders if not each.startswith(".")]
            files = [each for each in files if not each.startswith(".")]
        for file in files:
            if not names or any(fnmatchcase(file.lower(), name) for name in names):
                yield Path(folder, file)


INSTALLING = {
    **dict.fromkeys(("pip", "pip3"), ("install", "uninstall")),
    "uv": ("sync", "add", "remove", "venv", "pip install", "pip uninstall", "pip sync"),
    **dict.fromkeys(("poetry", "pdm", "pipenv"), ("install", "add", "remove", "update", "sync", "uninstall")),
    "npm": ("install", "i", "ci", "add", "uninstall", "remove", "rm", "update", "dedupe", "prune", "rebuild", "link"),
    "pnpm": ("install", "i", "add", "remove", "rm", "update", "up", "dedupe", "prune", "rebuild", "link"),
    "yarn": ("", "install", "add", "remove", "upgrade", "up", "dedupe", "link"),
    "bun": ("install", "i", "add", "remove", "update", "link"),
    **dict.fromkeys(("python", "python3"), ("-m pip", "-m venv", "-m virtualenv", "-m ensurepip")),
}
"""By package manager: beginnings of calls that change ``.venv`` or ``node_modules``."""
SYSTEM = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var", "/sys", "/proc", "/dev", "/run", "/opt")
BESIDE = "git reads older versions of files, which are hidden from the other commands; run git in a separate call"
INDEX_ONLY = frozenset(
    {"ls-files", "rev-parse", "config", "remote", "check-ignore", "check-attr", "version", "help", "var"}
)
"""Git subcommands that need no stored commits."""
ALONE = "git may write its own files only when it runs alone; run the other commands in separate calls"


@frozen
class ProfileChoice:
    """``unasked``: the profile if rules or reading allow the command; ``approved``: the profile if the user or a mode
    does. ``why``: why it must ask although rules cover each part. ``reads``: it is allowed as a reader only. ``exact``:
    a rule states exactly this command."""

    unasked: Profile
    approved: Profile
    why: str = ""
    reads: bool = False
    exact: bool = False


def hold(
    subject: Subject, allows: Sequence[Rule], stored: tuple[Path, ...] = (), masked: tuple[Path, ...] = ()
) -> ProfileChoice:
    """Return the profiles of a command.

    ``allows``: the allow rules for the tool whose conditions hold. ``stored``: files with secrets that git stores; only
    the user, or a rule for exactly this command, reveals them. ``masked``: files that rules hide from a read-only
    command.
    """
    commands = subject.commands
    private = tuple(dict.fromkeys(path for each in commands for path in _private(each)))
    gits = [command for command in commands if program(command) == "git" and not command.harmless]
    approved = Profile("working", bool(gits), any(map(_installs, commands)), *_elsewhere(commands), stored)
    approved = replace(approved, private=private, masked=masked) if private or masked else approved
    if any(rule.pattern == subject.command for rule in allows):
        return ProfileChoice(approved, approved, exact=True)
    ruled = [any(_covers(rule, command) for rule in allows) for command in commands]
    plain = all(command.plain_reader for command in commands)
    if not all(ruled) and all(command.harmless and not command.writes for command in commands):
        seen = _history(commands)
        why = BESIDE if not seen and any(map(_needs_history, commands)) else ""
        readable = approved.readable
        reading = Profile("reading", readable=readable, plain=plain, history=seen, masked=masked, private=private)
        return ProfileChoice(reading, approved, why, reads=True)
    whys = (_mixed(commands, ruled) or _together(commands, gits), seen_by_git(stored))
    return ProfileChoice(replace(approved, unhidden=()), approved, "; ".join(filter(None, whys)))


def _private(command: ResolvedCommand) -> Iterator[Path]:
    """Yield listed folders that the sandbox replaces with private ones."""
    if command.lists and any(not seen.inside for seen in command.reads):
        yield from (seen.path for seen in command.reads if seen.path in {Path("/"), *stand_ins()})


def leave(subject: Subject, rules: Sequence[Rule]) -> Rule | None:
    """Return the first of ``rules`` that lets the command run outside the sandbox; None if some part may not."""
    if subject.trouble or not subject.commands:
        return None
    if whole := next((rule for rule in rules if rule.pattern == subject.command), None):
        return whole
    found: list[Rule] = []
    for command in subject.commands:
        rule = next((rule for rule in rules if permits(rule.pattern, command)), None)
        if rule is None and not (command.plain_reader and not command.outside and not command.below):
            return None
        found += [rule] if rule else []
    return found[0] if found else None


def outer_offer(subject: Subject) -> str | None:
    """Return the narrowest rule that would let such a command leave the sandbox; None if none should."""
    lacks = [Lack(command, "") for command in subject.commands if not command.plain_reader]
    return offered(replace(subject, tool=OUTER), lacks) if lacks else None


def _history(commands: Sequence[ResolvedCommand]) -> HistoryAccess:
    """Return whether read-only commands may see stored commits: only if no command but git opens them."""
    others = [command for command in commands if program(command) not in {"git", "cd"}]
    if all(program(command) != "git" for command in commands) or any(_opens_git(command) for command in commands):
        return ""
    if not any(command.reads or command.named or command.below for command in others):
        return "alone"
    return "beside" if all(command.plain_reader for command in others) else ""


def _needs_history(command: ResolvedCommand) -> bool:
    words = command.plain or command.words
    return program(command) == "git" and not (len(words) > 1 and words[1] in INDEX_ONLY)


def _opens_git(command: ResolvedCommand) -> bool:
    """Return whether a command may open files that belong to git."""
    if any(is_in_git(below.folder) or (below.hidden and holds_git(below.folder)) for below in command.below):
        return True
    return any(is_in_git(seen.path) for seen in (*command.reads, *command.named))


def _covers(rule: Rule, command: ResolvedCommand) -> bool:
    return (rule.pattern is not None or rule.tool in SHELL_TOOLS) and permits(rule.pattern, command)


def _mixed(commands: Sequence[ResolvedCommand], ruled: Sequence[bool]) -> str:
    """Return which part nothing would keep from writing, because a rule lets the rest of the command write."""
    pairs = zip(commands, ruled, strict=True)
    loose = next((command for command, by_rule in pairs if command.harmless and command.loose and not by_rule), None)
    why = "would not be kept from writing, because the rest of the command may write"
    return f"`{program(loose)}` {why}" if loose else ""


def _together(commands: Sequence[ResolvedCommand], gits: Sequence[ResolvedCommand]) -> str:
    if not gits or (len(gits) == 1 and all(command is gits[0] or command.plain_reader for command in commands)):
        return ""
    return ALONE


def seen_by_git(stored: Sequence[Path]) -> str:
    """Return why a git call asks whose files with secrets can't be hidden from it; empty for none."""
    why = "which holds secrets, so the file is not hidden from this command"
    return f"git tracks {stored[0].name}, {why}" if stored else ""


def alone(subject: Subject) -> str:
    """Return why a mode that allows sandboxed commands asks all the same; empty if it need not."""
    gits = [command for command in subject.commands if program(command) == "git" and not command.harmless]
    if why := _together(subject.commands, gits):
        return why
    installer = next((program(command) for command in subject.commands if _installs(command)), "")
    return f"`{installer}` changes programs that later run outside the sandbox" if installer else ""


def program(command: ResolvedCommand) -> str:
    """Return the name of a command's program, without its folder."""
    return ((command.plain or command.words or ("",))[0] or "").rsplit("/", 1)[-1]


def _installs(command: ResolvedCommand) -> bool:
    if command.harmless:
        return False
    words = [word or "" for word in (command.plain or command.words)]
    name, said = program(command), " ".join(words[1:])
    known_calls = INSTALLING.get(name, ())
    return name == "virtualenv" or any(said == call or (call and said.startswith(f"{call} ")) for call in known_calls)


def _elsewhere(commands: Sequence[ResolvedCommand]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return files outside the workspace that the commands read, and those that they write."""
    read: dict[Path, None] = {}
    written: dict[Path, None] = {}
    for command in commands:
        for seen in (*command.reads, *command.named):
            if _outer(seen):
                (read if command.harmless or _is_system(seen.path) else written)[seen.path] = None
        for seen in command.writes:
            if _outer(seen) and not _is_system(seen.path):
                written[seen.path] = None
    return tuple(read), tuple(written)


def _outer(seen: TouchedPath) -> bool:
    if seen.inside or seen.secret or seen.guarded or len(seen.path.parts) < 3:
        return False
    home = user_home()
    return home is None or not home.is_relative_to(seen.path)


def _is_system(path: Path) -> bool:
    return str(path).startswith(tuple(f"{folder}/" for folder in SYSTEM))
