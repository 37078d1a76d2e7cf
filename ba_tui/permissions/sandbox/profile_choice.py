"""In which profile a shell command runs, and whether what holds it there suffices to run it unasked.

Whether it asks for another reason is decided in ``policy``; what the profiles mean stands in ``core.profiles``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui.core.profiles import HistoryAccess, Profile
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import TouchedPath
from ba_tui.permissions.rules.command_rules import permits
from ba_tui.permissions.rules.covering import Lack, offered, stand_ins
from ba_tui.permissions.rules.rule import OUTER, SHELL_TOOLS, Rule, Subject
from ba_tui.permissions.sandbox.git_stores import holds_git, is_in_git
from ba_tui.permissions.shell.resolved_command import ResolvedCommand
from ba_tui.resources import user_home

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
"""By package manager, how calls begin that change ``.venv`` or ``node_modules``."""
SYSTEM = ("/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/var", "/sys", "/proc", "/dev", "/run", "/opt")
BESIDE = "git reads older versions of files, which are hidden from the other commands; run git in a call of its own"
INDEX_ONLY = frozenset(
    {"ls-files", "rev-parse", "config", "remote", "check-ignore", "check-attr", "version", "help", "var"}
)
"""Subcommands of git that work without what git stores of commits."""
ALONE = "git may write its own files only when it runs alone; run the other commands in calls of their own"


@frozen
class ProfileChoice:
    """``unasked``: what the command gets when rules or its reading allow it, ``approved``: when the person or a mode
    does. ``why`` it must not run unasked although rules cover each part; ``reads``: it is allowed as a reader only;
    ``exact``: a rule says just this command."""

    unasked: Profile
    approved: Profile
    why: str = ""
    reads: bool = False
    exact: bool = False


def hold(
    subject: Subject, allows: Sequence[Rule], stored: tuple[Path, ...] = (), masked: tuple[Path, ...] = ()
) -> ProfileChoice:
    """``allows`` are the allow rules for the tool whose conditions hold; ``stored``: files with secrets that git
    stores, which nobody but the person, or a rule for just this command, shows to it; ``masked``: files that rules keep
    from it where it only reads."""
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
        reading = Profile(
            "reading", readable=approved.readable, plain=plain, history=seen, masked=masked, private=private
        )
        return ProfileChoice(reading, approved, why, reads=True)
    whys = (_mixed(commands, ruled) or _together(commands, gits), seen_by_git(stored))
    return ProfileChoice(replace(approved, unhidden=()), approved, "; ".join(filter(None, whys)))


def _private(command: ResolvedCommand) -> Iterator[Path]:
    """What a command lists of which it is shown something else."""
    places = (
        {Path("/"), *stand_ins()} if command.lists and any(not seen.inside for seen in command.reads) else set[Path]()
    )
    yield from (seen.path for seen in command.reads if seen.path in places)


def leave(subject: Subject, rules: Sequence[Rule]) -> Rule | None:
    """The first of ``rules`` by which the command may run outside the sandbox; None when not all of it may."""
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
    """The narrowest rule that would let such a command leave the sandbox; None when none should."""
    lacks = [Lack(command, "") for command in subject.commands if not command.plain_reader]
    return offered(replace(subject, tool=OUTER), lacks) if lacks else None


def _history(commands: Sequence[ResolvedCommand]) -> HistoryAccess:
    """Whether commands that only read may see what git stores of commits: only where none of them but git opens it."""
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
    """Whether a command may open files that belong to git."""
    if any(is_in_git(below.folder) or (below.hidden and holds_git(below.folder)) for below in command.below):
        return True
    return any(is_in_git(seen.path) for seen in (*command.reads, *command.named))


def _covers(rule: Rule, command: ResolvedCommand) -> bool:
    return (rule.pattern is not None or rule.tool in SHELL_TOOLS) and permits(rule.pattern, command)


def _mixed(commands: Sequence[ResolvedCommand], ruled: Sequence[bool]) -> str:
    """What of a command nothing would hold to reading, since a rule lets the rest of it write."""
    pairs = zip(commands, ruled, strict=True)
    loose = next((command for command, by_rule in pairs if command.harmless and command.loose and not by_rule), None)
    return (
        f"`{program(loose)}` would not be kept from writing, because the rest of the command may write" if loose else ""
    )


def _together(commands: Sequence[ResolvedCommand], gits: Sequence[ResolvedCommand]) -> str:
    if not gits or (len(gits) == 1 and all(command is gits[0] or command.plain_reader for command in commands)):
        return ""
    return ALONE


def seen_by_git(stored: Sequence[Path]) -> str:
    """Why a git call asks whose files with secrets can't be hidden from it; empty for none."""
    return (
        f"git tracks {stored[0].name}, which holds secrets, so the file is not hidden from this command"
        if stored
        else ""
    )


def alone(subject: Subject) -> str:
    """Why a mode that allows what stays in the sandbox asks all the same; empty when it need not."""
    gits = [command for command in subject.commands if program(command) == "git" and not command.harmless]
    if why := _together(subject.commands, gits):
        return why
    installer = next((program(command) for command in subject.commands if _installs(command)), "")
    return f"`{installer}` changes programs that later run outside the sandbox" if installer else ""


def program(command: ResolvedCommand) -> str:
    """The name of the program that a part runs, without its folder."""
    return ((command.plain or command.words or ("",))[0] or "").rsplit("/", 1)[-1]


def _installs(command: ResolvedCommand) -> bool:
    if command.harmless:
        return False
    words = [word or "" for word in (command.plain or command.words)]
    said = " ".join(words[1:])
    return (
        any(
            said == begins or (begins and said.startswith(f"{begins} "))
            for begins in INSTALLING.get(program(command), ())
        )
        or program(command) == "virtualenv"
    )


def _elsewhere(commands: Sequence[ResolvedCommand]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Files outside the workspace that the parts name, to be read and to be written."""
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
