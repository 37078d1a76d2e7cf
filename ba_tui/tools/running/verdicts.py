"""Judges whether a command failed, by the exit statuses of its parts: its own, those of a pipe, those before a ``;``.

A command failed where bash would have stopped it under ``set -e -o pipefail``. The statuses come from bash, which says
them at its end (``reporting``); names, from bash or from the command as it was written. Output is never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from ba_tui.permissions.shell.tree import Node, Pipeline

PIPE_CLOSED = 141
"""An earlier part of a pipe that was ended because nothing reads what it prints any more, as by ``head``."""
ANSWERS = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "git grep", "pgrep"), "no match"),
    **dict.fromkeys(("diff", "cmp", "comm", "git diff"), "they differ"),
}
"""Programs whose 1 is an answer and no failure, and what it says."""
CONDITIONS = frozenset({"test", "[", "[[", "((", "let", "read", "expr"})
"""Programs whose 1 says that a condition is false: no failure within a command, but one as the end of it."""
LONGEST = 60

_PROGRAM = '"${BASH_COMMAND%%[!A-Za-z0-9_./+=|\\$(\\"[[:space:]-]*}"'
"""How the command that runs begins."""
_NOTE = 'case ${#_ba_ends} in ?|??|???) _ba_ends+="${PIPESTATUS[@]} '
"""The statuses of the last pipe, while fewer than a thousand characters are noted."""
# All of it silently: ``set -x`` shows what traps do, too.
_ON_FAILURE = f'{{ {_NOTE}"; builtin printf -v _ba_ends "%s%.80s;" "$_ba_ends" {_PROGRAM};; esac; }} 2>/dev/null'
_BEFORE_EACH = (
    '{ case "${#PIPESTATUS[@]} ${PIPESTATUS[@]}" in "1 "*) ;; '
    f'*" "*[1-9]*" 0") {_NOTE};";; esac;; esac; }} 2>/dev/null'
)
"""What ERR does not tell of: a pipe whose last part did not fail."""
_LAST_WORDS = (
    f'{{ builtin printf "%.2000s " "${{_ba_ends-}}" {_PROGRAM} "!" "${{PIPESTATUS[@]}}"; builtin pwd -P; }}'
    " >&98 2>/dev/null"
)
"""What bash says at its end. Expanded before anything else runs: the statuses are those of the command's own pipe."""
_END = regex(r"((?:\d{1,3} )+)([^;]*);", re.ASCII)
_MIDDLE_PIPE = regex(r"[^|]\|(?!\|)[^;&\n]*(?:;|&|\|\||\n)")
_ASSIGNED = regex(r"\w+\+?=(?!\"?\$\()\S*\s+", re.ASCII)
_SUBSTITUTED = regex(r'\w+\+?="?\$\(\s*', re.ASCII)


@frozen
class Verdict:
    """Whether a command ``failed``; ``parts``: "`pytest` exited 1" for each part whose failure the command's own exit
    status does not tell; ``answer``: what that status says where it is an answer."""

    failed: bool
    parts: tuple[str, ...] = ()
    answer: str = ""


def reporting(script: str) -> str:
    """``script`` so that bash says how its parts ended. It says so in the script's own first line: bash counts lines as
    the script does; but before a script of one line, which bash repeats when it can't understand it."""
    between = "; " if "\n" in script.strip() else "\n"
    traps = ["_ba_ends=", f"trap '{_LAST_WORDS}' EXIT", f"trap '{_ON_FAILURE}' ERR"]
    if _MIDDLE_PIPE.search(script.strip()):
        # It runs before each command, which makes long loops slow: only where a pipe may not be the end.
        traps.append(f"trap '{_BEFORE_EACH}' DEBUG")
    return "; ".join(traps) + between + script


def judged(script: str, code: int | None, codes: Sequence[int] = (), notes: str = "") -> Verdict:
    """How ``script`` ended: with ``code``, its last pipe with ``codes``. ``notes``: what bash said besides."""
    ends = [(tuple(map(int, numbers.split())), _program(text)) for numbers, text in _END.findall(notes)]
    program = _program(notes.rpartition(";")[2]) if code else ""
    last = tuple(codes) if len(codes) > 1 else ()
    if code and (tuple(codes), program) in ends:
        # The end of the command, which bash noted as a failure like any other.
        place = len(ends) - 1 - ends[::-1].index((tuple(codes), program))
        del ends[place]
    said = dict.fromkeys(words for ended, name in ends for words in _failed_parts(script, ended, name))
    said |= dict.fromkeys(_failed_parts(script, (*last[:-1], 0), program) if last else ())
    answer = ANSWERS.get(program, "") if code == 1 else ""
    return Verdict(bool(said) or bool(code and not answer), tuple(said), answer)


def _failed_parts(script: str, ended: tuple[int, ...], program: str) -> Iterator[str]:
    """```pytest` exited 1`` for each part of a pipe that failed. ``program`` is the last part."""
    if not any(ended):
        return
    names = _names(script, len(ended)) if len(ended) > 1 else [""]
    for place, code in enumerate(ended):
        last = place == len(ended) - 1
        name = program if last and program else names[place] if names else ""
        if not code or (code == PIPE_CLOSED and not last) or (code == 1 and (name in ANSWERS or name in CONDITIONS)):
            continue
        said = f"`{name[:LONGEST]}`" if name else f"part {place + 1} of the pipe" if len(ended) > 1 else "a command"
        yield f"{said} exited {code}"


def _program(text: str) -> str:
    """The program that a command runs, by its first words: without its folder, with a command of git's."""
    text = text.strip()
    if text.startswith("(("):
        return "(("
    if found := _SUBSTITUTED.match(text):
        text = text[found.end() :].rpartition("|")[2]
    return _named(_ASSIGNED.sub("", text).replace('"', "").split())


def _named(words: Sequence[str]) -> str:
    name = words[0].rpartition("/")[2] if words else ""
    return f"git {words[1]}" if name == "git" and len(words) > 1 else name


def _names(script: str, parts: int) -> list[str]:
    """The programs of the one pipe of ``script`` that has so many parts; none where there are several, or where the
    script can't be read."""
    from ba_tui.permissions.shell.parser import Parser  # noqa: PLC0415 - the grammar, for hardly any command
    from ba_tui.permissions.shell.tokens import TokenFindings, UnreadableCommand  # noqa: PLC0415
    from ba_tui.permissions.shell.tree import SimpleCommand  # noqa: PLC0415

    try:
        found = [pipe for pipe in _pipes(Parser(script, TokenFindings()).whole()) if len(pipe.items) == parts]
    except (UnreadableCommand, RecursionError):
        return []
    if len(found) != 1:
        return []
    words = [part.words if isinstance(part, SimpleCommand) else () for part in found[0].items]
    return [_named([word.literal() or "" for word in each[:2]]) for each in words]


def _pipes(node: Node) -> Iterator[Pipeline]:
    """The pipes of ``node`` that its own shell runs."""
    from ba_tui.permissions.shell.tree import Chain, CommandList, Compound, Pipeline  # noqa: PLC0415

    match node:
        case Pipeline():
            yield node
        case Chain(items=items) | CommandList(items=items):
            for item in items:
                yield from _pipes(item)
        case Compound(kind="group" | "loop" | "branch", bodies=bodies):
            for body in bodies:
                yield from _pipes(body)
        case _:
            return
