"""What a command runs if it runs another one: the words or text, and the wrapper around it.

Wrappers and their options are data; an unlisted option is an error, since its value might be the command. ``scope``
handles builtins that take code as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.shell.listings import found
from ba_tui.permissions.shell.simple_commands import (
    ExpandedRedirect,
    Inner,
    KnownListing,
    OpenedCommand,
    ShellWord,
    joined,
    several,
)
from ba_tui.permissions.shell.tree import UnreadableCommand


@frozen
class WrapperOptions:
    """The options of a program that runs another one.

    - ``flags`` and ``valued``: short options without and with a value
    - ``long`` and ``long_valued``: the same for long options
    - ``optional``: short options whose value, if any, is attached
    - ``operands``: number of words before the command
    - ``writes``: options whose value is a file that it writes
    """

    flags: str = ""
    valued: str = ""
    long: str = ""
    long_valued: str = ""
    operands: int = 0
    optional: str = ""
    writes: str = ""


WRAPPERS: Mapping[str, WrapperOptions] = {
    "sudo": WrapperOptions(
        "ABbEeHiKklNnPSsVv",
        "aCcDgpRrTtUu",
        "askpass background bell edit remove-timestamp set-home login list non-interactive no-update preserve-groups"
        " stdin shell reset-timestamp validate help version preserve-env",
        "close-from chdir group host prompt chroot role type command-timeout other-user user auth-type login-class",
    ),
    "doas": WrapperOptions("nsL", "aCu"),
    "timeout": WrapperOptions("pfv", "ks", "preserve-status foreground verbose", "kill-after signal", operands=1),
    "nice": WrapperOptions("0123456789", "n", "", "adjustment"),
    "ionice": WrapperOptions("t", "cnpPu", "ignore", "class classdata pid pgid uid"),
    "nohup": WrapperOptions(),
    "setsid": WrapperOptions("cfw", "", "ctty fork wait"),
    "stdbuf": WrapperOptions("", "ioe", "", "input output error"),
    "time": WrapperOptions("apvV", "fo", "append portability verbose quiet", "format output", writes="o output"),
    "xargs": WrapperOptions(
        "0oprtx",
        "adEILnPsJRS",
        "null no-run-if-empty interactive open-tty verbose exit show-limits replace max-lines eof help version",
        "arg-file delimiter max-args max-chars max-procs",
        optional="eil",
    ),
    "env": WrapperOptions(
        "i0v",
        "uCSP",
        "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
        "unset chdir split-string",
        optional="",
    ),
    "command": WrapperOptions("p"),
    "builtin": WrapperOptions(),
    # -a, as of env, renames the program, and some programs change with their name.
    "exec": WrapperOptions("cl"),
    "taskset": WrapperOptions("apc", "", "all-tasks pid cpu-list", operands=1),
    "caffeinate": WrapperOptions("dimsu", "tw"),
    "gtimeout": WrapperOptions("pfv", "ks", "preserve-status foreground verbose", "kill-after signal", operands=1),
}

RUNNERS = frozenset(
    ["chroot", "unshare", "nsenter", "strace", "ltrace", "chpst", "systemd-run", "runuser", "su", "parallel",
     "entr", "watch", "flock", "script", "ssh", "prlimit", "valgrind", "catchsegv", "linux32", "linux64",
     "setarch", "unbuffer", "chronic", "fakeroot", "torsocks", "proxychains4", "dbus-run-session", "xvfb-run",
     "firejail", "cpulimit", "busybox", "toybox"]
)  # fmt: skip
"""Programs that run others and always ask: what they run need not be exact."""
PLACES = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


@frozen
class OptionLine:
    """A parsed command line: the options with their values, and the operands."""

    seen: tuple[tuple[str, ShellWord | None], ...]
    rest: tuple[ShellWord, ...]

    def has(self, *names: str) -> bool:
        """Return whether one of the options is present."""
        return any(name in names for name, _ in self.seen)

    def values(self, *names: str) -> list[ShellWord]:
        """Return the values of these options."""
        return [value for name, value in self.seen if name in names and value is not None]


def program(word: ShellWord) -> str:
    """Return the name under which ``word`` is looked up as a wrapper; empty unless it is a system program."""
    if word.text is None or word.glob:
        return ""
    folder, _, name = word.text.rpartition("/")
    if not name:
        return ""
    return name if (folder in PLACES and (folder or "/" not in word.text)) else ""


def read_options(options: WrapperOptions, words: Sequence[ShellWord]) -> OptionLine:
    """Parse ``words`` after the program's name, up to the first operand."""
    seen: list[tuple[str, ShellWord | None]] = []
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        if text is None or word.glob or text == "-" or not text.startswith("-"):
            break
        at += 1
        if text == "--":
            break
        if text.startswith("--"):
            name, takes, attached = _long(options, text)
            value = ShellWord(attached, word.raw) if attached is not None else None
        else:
            flags, name, takes, attached = _short(options, text)
            seen.extend((flag, None) for flag in flags)
            value = ShellWord(attached, word.raw) if attached else None
        if takes and value is None:
            if at >= len(words):
                raise UnreadableCommand(f"the option {text!r} has no value")
            value = words[at]
            if several(value):
                raise UnreadableCommand(f"the value of {text!r} may be several words")
            at += 1
        if name:
            seen.append((name, value))
    return OptionLine(tuple(seen), tuple(words[at:]))


def _long(options: WrapperOptions, text: str) -> tuple[str, bool, str | None]:
    name, equals, attached = text[2:].partition("=")
    flags, valued = options.long.split(), options.long_valued.split()
    if name in valued or (not equals and name in flags):
        return name, name in valued, attached if equals else None
    if name in flags:
        return name, False, attached
    close = [known for known in (*flags, *valued) if known.startswith(name)]
    if len(close) != 1:
        raise UnreadableCommand(f"the option {text[:40]!r} is not known")
    return close[0], close[0] in valued, attached if equals else None


def _short(options: WrapperOptions, text: str) -> tuple[str, str, bool, str]:
    """Return the flags in a cluster, the option with a value that ends it, and the attached value."""
    for index, letter in enumerate(text[1:], 1):
        if letter in options.valued:
            return text[1:index], letter, True, text[index + 1 :]
        if letter in options.optional:
            return text[1:index], letter, False, text[index + 1 :]
        if letter not in options.flags:
            raise UnreadableCommand(f"the option {text[:40]!r} is not known")
    return text[1:], "", False, ""


def written_files(options: WrapperOptions, line: OptionLine) -> Iterator[ShellWord]:
    """Yield the files that the options make the program write."""
    letters, *names = options.writes.split() or [""]
    for name, value in line.seen:
        if value is not None and (name in names or (len(name) == 1 and name in letters)):
            yield value


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
"""Text that ``xargs`` splits at blanks and takes literally."""
_WHOLE = frozenset({"t", "r", "verbose", "no-run-if-empty"})
"""Options with which ``xargs`` passes its whole input to one command."""
_RUN = regex(r"-[a-zA-Z]*[xX]|--exec")
_NAMED = regex(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")


def commands_inside(words: Sequence[ShellWord], given: str | KnownListing | None = None) -> OpenedCommand | None:
    """Return the commands that ``words`` runs besides itself; None if it is no known wrapper.

    ``given``: its input; None if it is unknown before it runs.
    """
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
    """Return every command that an always-asking program may run, for strict rules and warnings.

    The words from each position on, and words with blanks as a text.
    """
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
    line = read_options(options, words[1:])
    rest = _after(line, options.operands)
    writes = tuple(ExpandedRedirect("write", value) for value in written_files(options, line))
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
                raise UnreadableCommand(f"what {name!r} runs is known only when it runs")
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
    """Return how many words after a cluster of a shell's options are their values."""
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
        line = read_options(WRAPPERS[name], rest)
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
        raise UnreadableCommand("'env -S' is nested too deeply")
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
    """Return ``name=value`` as ``env`` takes it: any word with an equals sign."""
    if word.text is not None:
        name, equals, value = word.text.partition("=")
        return (name, ShellWord(value, word.raw)) if equals else None
    match = _NAMED.match(word.raw)
    return (match.group(1), ShellWord(None, word.raw)) if match else None


def _split(value: ShellWord) -> list[ShellWord]:
    """Return the words of plain ``env -S`` text."""
    if value.text is None or re.search(r"[\\$\"'#\x00-\x08\x0b-\x1f]", value.text):
        raise UnreadableCommand("the text of 'env -S' is not plain")
    return [ShellWord(piece, piece) for piece in value.text.split()]


def _sudo(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    line = read_options(WRAPPERS[name], words[1:])
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
    line = read_options(WRAPPERS[name], words[1:])
    if line.has("help", "version"):
        return OpenedCommand(itself=True)
    reads = tuple(ExpandedRedirect("read", value) for value in line.values("a", "arg-file"))
    rest = line.rest or (ShellWord("echo", "echo"),)
    among = given if isinstance(given, KnownListing) and not reads and _splits(line, given) else None
    if not reads and isinstance(given, str):
        if not given:
            # With empty input, it runs its command once without further words, or not at all.
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
    """Return whether ``xargs`` splits the names as they were listed; without NULs, blanks are checked separately."""
    return line.has("0", "null") == given.ended and not line.has("d", "delimiter", "E", "e", "eof", "o", "open-tty")


def _filled(word: ShellWord, marks: Sequence[str | None], among: KnownListing | None = None) -> ShellWord:
    """Return ``word`` with marks replaced by an unknown value: one of the files ``among`` if the mark is the whole
    word."""
    if word.text is not None and not any(mark is None or mark in word.text for mark in marks):
        return word
    return ShellWord(None, word.raw, among=among if word.text in marks and word.text else None)


def _find(name: str, words: Sequence[ShellWord]) -> OpenedCommand:
    """Return the commands of ``-exec …  ;`` and similar. All else of ``find`` is judged by its own words."""
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
    # Judge the command separately from find's own words only if -exec is the only action.
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
    """Return the code of ``git -c alias.x='!code' x``; all else is judged by its own words."""
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
