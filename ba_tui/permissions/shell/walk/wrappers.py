"""What a command that runs another one runs: its words or its text, and what it runs under.

The option tables stand in ``wrapper_options``, builtins that take code as text in ``builtins``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import UnreadableCommand
from ba_tui.permissions.shell.walk.inner_commands import Inner, OpenedCommand, joined, several
from ba_tui.permissions.shell.walk.listings import found
from ba_tui.permissions.shell.walk.values import KnownListing, Redirect, ShellWord
from ba_tui.permissions.shell.walk.wrapper_options import RUNNERS, WRAPPERS, OptionLine, program, read, written

MOST_STARTS = 16
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "lksh", "oksh", "yash", "posh"})
BASHES = frozenset({"bash", "rbash"})
SETTINGS = frozenset(
    ["allexport", "errexit", "errtrace", "functrace", "hashall", "noclobber", "noglob", "notify", "nounset", "onecmd",
     "pipefail", "verbose", "xtrace", "nullglob", "globstar", "dotglob", "failglob", "nocaseglob",
     "nocasematch", "inherit_errexit", "checkwinsize", "globasciiranges"]
)  # fmt: skip
_SHELL_WORDS = frozenset(
    ["--login", "--norc", "--noprofile", "--posix", "--restricted", "--verbose", "--version", "--help"]
)  # fmt: skip
_SHELL_LETTERS = frozenset("abefhiklmnprtuvxBCDEHPT")
_PLAIN = regex(r"[^'\"\\\x00-\x08\x0b-\x1f\x7f-\U0010ffff]+")
"""What ``xargs`` splits at blanks and takes as it is."""
_WHOLE = frozenset({"t", "r", "verbose", "no-run-if-empty"})
"""Options of ``xargs`` with which all that it reads goes to one command."""
_RUN = regex(r"-[a-zA-Z]*[xX]|--exec")
_NAMED = regex(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")


def opened(words: Sequence[ShellWord], given: str | KnownListing | None = None) -> OpenedCommand | None:
    """The commands that ``words`` runs besides itself; None when it is no program known to run others. ``given`` is
    what it reads, None when that is known only when it runs."""
    name = program(words[0])
    if name == "xargs":
        return _xargs(name, words, given)
    opener = _OPENERS.get(name)
    if opener:
        return opener(name, words)
    if name in SHELLS:
        return _shell(name, words)
    if name in WRAPPERS:
        return _wrapper(name, words)
    return _anything(name, words) if name in RUNNERS else None


def _anything(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    """All that a program which asks in any case may run, for strict rules and warnings: the words from each on, and
    what has blanks in it as a text."""
    inner: list[Inner] = []
    for at, word in enumerate(words[1 : MOST_STARTS + 1], 1):
        text = word.text or ""
        if text.startswith("-"):
            text = text.partition("=")[2] if text.startswith("--") else text[2:]
        if any(char.isspace() for char in text):
            inner.append(Inner(name, code=ShellWord(text, word.raw), folder=None))
        elif text and text == word.text:
            inner.append(Inner(name, tuple(words[at:]), folder=None))
    return OpenedCommand(tuple(inner), itself=True)


def _wrapper(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    options = WRAPPERS[name]
    line = read(options, words[1:])
    rest = _after(line, options.operands)
    writes = tuple(Redirect("write", value) for value in written(options, line))
    if not rest:
        return OpenedCommand(itself=True)
    return OpenedCommand((Inner(name, rest, redirects=writes),))


def _after(line: OptionLine, operands: int) -> tuple[ShellWord, ...]:
    for word in line.rest[:operands]:
        if several(word):
            raise UnreadableCommand(f"{word.raw[:40]!r} may be several words")
    return line.rest[operands:]


def _shell(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    code, at = False, 1
    while at < len(words):
        text = words[at].text
        if text is None or words[at].glob:
            if several(words[at]) or not code:
                raise UnreadableCommand(f"what {name!r} is told to run is known only when it runs")
            break
        if text in ("--", "-"):
            at += 1
            break
        if not text.startswith(("-", "+")) or len(text) < 2:
            break
        at += 1
        if text.startswith("--"):
            if text not in _SHELL_WORDS:
                raise UnreadableCommand(f"the option {text[:40]!r} of {name!r} is not known")
            continue
        code = code or (text[0] == "-" and "c" in text)
        for _ in range(_shell_values(name, text)):
            if at >= len(words) or words[at].text not in SETTINGS:
                raise UnreadableCommand(f"a setting of {name!r} changes what is read")
            at += 1
    if code:
        if at >= len(words):
            raise UnreadableCommand(f"{name!r} has no text to run")
        return OpenedCommand((Inner(name, code=words[at], posix=name not in BASHES),))
    if at < len(words) and not any(word.text and "s" in word.text for word in words[1:at]):
        if (words[at].text or "").startswith(("/dev/", "/proc/")):
            raise UnreadableCommand(f"what {name!r} reads and runs is known only when it runs")
        return OpenedCommand(itself=True)
    return OpenedCommand((Inner(name, reads_input=True, posix=name not in BASHES),), itself=True)


def _shell_values(name: str, text: str) -> int:
    """How many words after a cluster of a shell's options are values of it."""
    values = 0
    for letter in text[1:]:
        if letter in "oO":
            values += 1
        elif letter not in _SHELL_LETTERS and letter not in "cls":
            raise UnreadableCommand(f"the option {text[:40]!r} of {name!r} is not known")
        if letter in "kHi":
            raise UnreadableCommand(f"the option {text[:40]!r} of {name!r} changes what is read")
    return values


def _env(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    rest = tuple(words[1:])
    folder: str | None = ""
    assigned: list[tuple[str, ShellWord]] = []
    for _ in range(8):
        line = read(WRAPPERS[name], rest)
        for value in line.values("C", "chdir"):
            folder = value.text
        if line.values("P"):
            assigned.append(("PATH", line.values("P")[0]))
        split = line.values("S", "split-string")
        rest = line.rest
        if not split:
            break
        rest = (*_split(split[0]), *rest)
    else:
        raise UnreadableCommand("'env -S' stands in itself too often")
    while rest:
        variable = _variable(rest[0])
        if variable is None:
            break
        assigned.append(variable)
        rest = rest[1:]
    if not rest:
        return OpenedCommand(itself=True)
    return OpenedCommand((Inner("env", rest, folder=folder, assignments=tuple(assigned)),))


def _variable(word: ShellWord) -> tuple[str, ShellWord] | None:
    """``name=value`` as ``env`` takes it: anything with a sign of equality."""
    if word.text is not None:
        name, equals, value = word.text.partition("=")
        return (name, ShellWord(value, word.raw)) if equals else None
    match = _NAMED.match(word.raw)
    return (match.group(1), ShellWord(None, word.raw)) if match else None


def _split(value: ShellWord) -> list[ShellWord]:
    """The words of ``env -S`` text, where it is plain."""
    if value.text is None or re.search(r"[\\$\"'#\x00-\x08\x0b-\x1f]", value.text):
        raise UnreadableCommand("the text of 'env -S' is not plain")
    return [ShellWord(piece, piece) for piece in value.text.split()]


def _sudo(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    line = read(WRAPPERS[name], words[1:])
    rest = line.rest
    assigned: list[tuple[str, ShellWord]] = []
    while rest and (variable := _variable(rest[0])):
        assigned.append(variable)
        rest = rest[1:]
    if line.has("e", "edit") or not rest:
        return OpenedCommand(itself=True)
    folder: str | None = None if line.has("i", "login", "R", "chroot") else ""
    for value in line.values("D", "chdir"):
        folder = value.text
    if line.has("s", "shell", "i", "login"):
        return OpenedCommand((Inner(name, code=joined(rest), folder=folder, assignments=tuple(assigned)),))
    return OpenedCommand((Inner(name, rest, folder=folder, assignments=tuple(assigned)),))


def _xargs(name: str, words: Sequence[ShellWord], given: str | KnownListing | None) -> OpenedCommand:
    line = read(WRAPPERS[name], words[1:])
    if line.has("help", "version"):
        return OpenedCommand(itself=True)
    reads = tuple(Redirect("read", value) for value in line.values("a", "arg-file"))
    rest = line.rest or (ShellWord("echo", "echo"),)
    among = given if isinstance(given, KnownListing) and not reads and _splits(line, given) else None
    if not reads and isinstance(given, str):
        if not given:
            # It reads nothing, so it runs its command once without further words, or not at all.
            return OpenedCommand((Inner(name, rest),))
        if _PLAIN.fullmatch(given) and all(option in _WHOLE for option, _ in line.seen):
            return OpenedCommand((Inner(name, (*rest, *(ShellWord(piece, piece) for piece in given.split()))),))
    marks = [value.text for value in line.values("I", "i", "replace", "J")]
    if line.has("i", "replace") and not marks:
        marks = ["{}"]
    if not marks:
        return OpenedCommand((Inner(name, (*rest, ShellWord(None, "…", among=among)), redirects=reads),))
    filled = tuple(_filled(word, marks, among) for word in rest)
    return OpenedCommand((Inner(name, filled, redirects=reads),))


def _splits(line: OptionLine, given: KnownListing) -> bool:
    """Whether ``xargs`` takes the names apart as they were listed; blanks are looked for where there are no NULs."""
    return line.has("0", "null") == given.ended and not line.has("d", "delimiter", "E", "e", "eof", "o", "open-tty")


def _filled(word: ShellWord, marks: Sequence[str | None], among: KnownListing | None = None) -> ShellWord:
    """``word`` where a mark in it is filled with something unknown, one ``among`` these files where it is all of it."""
    if word.text is not None and not any(mark is None or mark in word.text for mark in marks):
        return word
    return ShellWord(None, word.raw, among=among if word.text in marks and word.text else None)


def _find(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    """``-exec …  ;`` and its like. Everything else of ``find`` is judged by its own words."""
    runs: list[tuple[str, tuple[ShellWord, ...]]] = []
    own = [words[0]]
    at = 1
    while at < len(words):
        text = words[at].text
        at += 1
        if text not in ("-exec", "-execdir", "-ok", "-okdir"):
            own.append(words[at - 1])
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            start = at
            while at < len(words) and not _ends(words, start, at):
                at += 1
            if at >= len(words) or at == start:
                raise UnreadableCommand(f"{text!r} has no end")
            runs.append((text, tuple(words[start:at])))
            at += 1
    among = found(own)
    inner = [
        Inner(
            name, tuple(_filled(word, ["{}"], among) for word in run), folder="" if text in ("-exec", "-ok") else None
        )
        for text, run in runs
    ]
    # What stands behind a command is judged with it only where that is all there is to it.
    apart = among is not None and all(text == "-exec" for text, _ in runs)
    return OpenedCommand(tuple(inner), itself=True, words=tuple(own) if apart else ())


def _ends(words: Sequence[ShellWord], start: int, at: int) -> bool:
    return words[at].text == ";" or (words[at].text == "+" and at > start and words[at - 1].text == "{}")


def _fd(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    return _anything(name, words) if any(_RUN.match(word.text or "") for word in words) else OpenedCommand(itself=True)


def _command(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    if len(words) > 1 and re.fullmatch(r"-p*[vV]p*", words[1].text or ""):
        return OpenedCommand(itself=True)
    return _wrapper(name, words)


def _taskset(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    if any(word.text and word.text.startswith("-") and "p" in word.text for word in words[1:2]):
        return OpenedCommand(itself=True)
    return _wrapper(name, words)


def _git(name: str, words: Sequence[ShellWord]) -> OpenedCommand | None:
    """``git -c alias.x='!code' x`` runs the code; all else is judged by its own words."""
    found: list[Inner] = []
    for before, word in pairwise(words):
        if before.text in ("-c", "--config-env") or (word.text or "").startswith("-calias."):
            setting = (word.text or "").removeprefix("-c")
            key, _, value = setting.partition("=")
            if key.lower().startswith("alias.") and before.text != "--config-env":
                code = value.removeprefix("!")
                inner = ShellWord(code, word.raw) if value.startswith("!") else ShellWord("git " + value, word.raw)
                found.append(Inner(name, code=inner, folder=None))
    return OpenedCommand(tuple(found), itself=True) if found else None


_OPENERS: Mapping[str, Callable[[str, Sequence[ShellWord]], OpenedCommand | None]] = {
    "env": _env,
    "sudo": _sudo,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "command": _command,
    "taskset": _taskset,
    "git": _git,
}
