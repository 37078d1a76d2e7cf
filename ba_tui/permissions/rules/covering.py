"""Whether rules and what is known cover a whole shell command, what is lacking, and which rule to offer for that.

What the parts of a command are is found in ``judgement``; the order of verdicts stands in ``policy``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from ba_tui.core.questions import Risk
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.rules.command_rules import names_all, permits
from ba_tui.permissions.rules.rule import SHELL_TOOLS, Rule, Subject
from ba_tui.permissions.shell.command_parts import Below, CommandPart
from ba_tui.permissions.shell.command_text import LONGEST_RULE, findings, rememberable
from ba_tui.permissions.shell.programs.known_commands import known
from ba_tui.permissions.touched import TouchedPath

_SYSTEM = regex(
    r"/(?:usr|lib|lib32|lib64|bin|sbin|sys/fs/cgroup|sys/devices/system)(?:/.*)?"
    r"|/etc/(?:os-release|lsb-release|debian_version|alpine-release|redhat-release|fedora-release|issue|hostname|timezone"
    r"|localtime|shells|services|protocols|mime\.types)"
    r"|/proc/(?:cpuinfo|meminfo|version|loadavg|uptime|stat|filesystems|mounts|self/(?:status|mounts|cgroup|limits))",
    re.DOTALL,
)
"""Files that tell what a machine is and which programs it has."""
_QUOTED = regex(r"`[^`]*`")
_WRITING = regex(
    r"\b(?:writes?|deletes|renames|makes a folder|may change something"
    r"|changes (?!which )(?:\w+ ){0,3}(?:files|branches|tags|references?|settings|text))\b"
)


@frozen
class Lack:
    """Why a part of a command asks. ``words``: a rule for that part could cover it."""

    part: CommandPart | None
    why: str
    words: bool = True


@frozen
class Covered:
    """``by``: the rules that cover what does more than read. Without any, and without ``lacks``, it only reads."""

    by: tuple[Rule, ...] = ()
    lacks: tuple[Lack, ...] = ()

    @property
    def reading(self) -> bool:
        """Whether it may run because it only reads: the sandbox then runs it so that it can do nothing else."""
        return not self.by and not self.lacks


@frozen
class FileCover:
    """Whether a file may be read, and written, as tools may; ``shown``: a path for people; ``kept``: which of the files
    that are gone through a rule keeps, empty for none; ``unheld``: why no sandbox holds what only reads, so that it
    changes nothing and sees no secret; empty when one does."""

    readable: Callable[[TouchedPath], bool]
    writable: Callable[[TouchedPath], bool]
    shown: Callable[[TouchedPath], str]
    kept: Callable[[Below], str]
    secret: Callable[[Below], str]
    unheld: Callable[[], str]


def cover(subject: Subject, allows: Sequence[Rule], files: FileCover) -> Covered:
    """``allows`` are the allow rules for the tool whose conditions hold.

    What a rule allows runs with more rights than what only reads, and so does all that stands in one command with it:
    nothing holds the rest then, so that it must be plain.
    """
    if whole := next((rule for rule in allows if rule.pattern == subject.command), None):
        return Covered((whole,))
    if subject.trouble:
        return Covered(lacks=(Lack(None, subject.trouble, words=False),))
    # Who allows every tool has not thought of every command; who names the shell alone has.
    allows = [rule for rule in allows if rule.pattern is not None or rule.tool in SHELL_TOOLS]
    ruled = [(part, _rule_for(part, allows)) for part in subject.parts]
    by = {rule.text: rule for part, rule in ruled if rule and not (part.harmless and rule.pattern is None)}
    lacks = [lack for part, rule in ruled if (lack := _lack(part, rule, files, alone=not by))]
    if not subject.parts and not subject.trouble and not (subject.command or "").strip():
        lacks.append(Lack(None, "it runs nothing", words=False))
    return Covered(tuple(by.values()), tuple(lacks))


def _rule_for(part: CommandPart, allows: Sequence[Rule]) -> Rule | None:
    """The rule that covers ``part`` as to its words, rather one that says all of them."""
    exact = next((rule for rule in allows if names_all(rule.pattern, part)), None)
    return exact or next((rule for rule in allows if permits(rule.pattern, part)), None)


def _lack(part: CommandPart, rule: Rule | None, files: FileCover, alone: bool) -> Lack | None:
    """What is lacking for ``part``, which ``rule`` covers as to its words; ``alone``: no rule covers another part."""
    if rule is not None and names_all(rule.pattern, part):
        return None
    if part.stops:
        return Lack(part, part.why, words=False)
    changing = next((seen for seen in part.writes if not files.writable(seen)), None)
    if rule is None and not part.harmless and not (part.writes and changing is not None and part.known):
        return Lack(part, part.why)
    if changing is not None:
        return Lack(part, f"`{_program(part)}` writes {files.shown(changing)}, and that asks in this mode", words=False)
    if rule is None and not part.harmless:
        return Lack(part, part.why)
    if rule is None and part.loose and (why := files.unheld() if alone else "not beside what a rule allows"):
        return Lack(part, f"{part.loose}, and {why}")
    return _reached(part, files, system=rule is None and alone)


def _reached(part: CommandPart, files: FileCover, system: bool) -> Lack | None:
    """What ``part`` reads that it may not; ``system``: files that are the same everywhere are fine in a sandbox."""
    outside = (seen for seen in (*part.reads, *part.named) if not seen.inside and not files.readable(seen))
    away = next(
        (seen for seen in outside if not (system and _SYSTEM.fullmatch(str(seen.path)) and not files.unheld())), None
    )
    if away is not None:
        return Lack(
            part, f"`{_program(part)}` reaches {files.shown(away)}, which is outside the workspace", words=False
        )
    why = next((why for below in part.below if (why := files.kept(below))), "")
    if not why and part.below and files.unheld():
        why = next((why for below in part.below if (why := files.secret(below))), "")
    return Lack(part, f"`{_program(part)}` would read {why}", words=False) if why else None


def _program(part: CommandPart) -> str:
    return (part.plain or part.words or ("it",))[0] or "it"


def offered(subject: Subject, lacks: Sequence[Lack]) -> str | None:
    """The narrowest rule that makes sense for what is lacking; None where nothing should be remembered."""
    command = subject.command or ""
    if subject.trouble or any(lack.part is None or lack.part.stops or None in lack.part.words for lack in lacks):
        return None
    if any(lack.part and lack.part.takes == "unseen" and not _prefix(lack.part) for lack in lacks):
        return None
    if any("destructive" in part.effects for part in subject.parts):
        return None
    whole = f"{subject.tool}({command})" if rememberable(command) else None
    if len(lacks) != 1 or not lacks[0].words or lacks[0].part is None:
        return whole
    text = _rule_text(lacks[0].part)
    return f"{subject.tool}({text})" if text else whole


def _rule_text(part: CommandPart) -> str:
    """``git add:*`` for what is known to be fine so, else every word."""
    if part.outside or part.writes:
        return ""
    if head := _prefix(part):
        return head
    text = "" if part.takes else shlex.join(word for word in part.words if word is not None)
    return text if rememberable(text) and len(text) <= LONGEST_RULE else ""


def _prefix(part: CommandPart) -> str:
    """``git add:*`` where any words may follow."""
    words = [word for word in part.words if word is not None]
    for count in (3, 2, 1):
        head = tuple(words[:count])
        known_so = len(head) == count and any(_fits(head, pattern) for pattern in known().offers)
        if known_so and not any(surplus.binding and surplus.at >= count for surplus in part.surplus):
            return f"{shlex.join(head)}:*"
    return ""


def _fits(head: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    plain = all(word.replace("-", "").replace(":", "").replace("_", "").isalnum() and word[0] != "-" for word in head)
    return (
        len(head) == len(pattern)
        and plain
        and all(
            word == want or (want == "*" and not _runs_code(word)) for word, want in zip(head, pattern, strict=True)
        )
    )


def _runs_code(word: str) -> bool:
    """Whether a script of that name may be the program, which then runs whatever follows it."""
    return word in known().scripts or word in known().wrappers


def risks(subject: Subject) -> tuple[Risk, ...]:
    """What a person should know before allowing the command, from its parts."""
    harmful = [part for part in subject.parts if not part.harmless]
    effects = frozenset[str]().union(*(part.effects for part in harmful))
    # What is said of a command is of its program as a whole; its words tell more of this very call.
    told = [findings(" ".join(word or "" for word in part.words)) for part in harmful]
    writes, network, destroys = (any(each[at] for each in told) for at in range(3))
    # An option that made it ask says itself what it does; the words in backticks are those of the command.
    why = (_QUOTED.sub("", surplus.why) for part in harmful for surplus in part.surplus)
    writes = writes or any(_WRITING.search(each) for each in why)
    destroys = destroys or "destructive" in effects
    found: list[tuple[bool, Risk]] = [
        (True, "runs a command"),
        (writes or destroys or bool(effects & {"outs"}) or any(part.writes for part in subject.parts), "writes"),
        (network or "network" in effects, "network"),
        (any(part.outside for part in subject.parts), "outside the workspace"),
        (destroys, "destructive"),
    ]
    return tuple(risk for holds, risk in found if holds)
