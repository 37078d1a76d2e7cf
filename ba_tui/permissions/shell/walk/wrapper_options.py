"""The options of programs that run other programs, as data, and how such a command line is read.

What is run then stands in ``shell_wrappers``. An option that is not listed is trouble: its value might be the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.permissions.shell.tokens import Unreadable
from ba_tui.permissions.shell.walk.inner_commands import several
from ba_tui.permissions.shell.walk.values import Word


@frozen
class Options:
    """``flags`` and ``valued``: short options without and with a value; ``long`` and ``long_valued`` the same of long
    ones; ``optional``: short ones whose value, if any, is attached; ``operands``: words before the command;
    ``writes``: options whose value is a file it writes."""

    flags: str = ""
    valued: str = ""
    long: str = ""
    long_valued: str = ""
    operands: int = 0
    optional: str = ""
    writes: str = ""


WRAPPERS: Mapping[str, Options] = {
    "sudo": Options(
        "ABbEeHiKklNnPSsVv",
        "aCcDgpRrTtUu",
        "askpass background bell edit remove-timestamp set-home login list non-interactive no-update preserve-groups"
        " stdin shell reset-timestamp validate help version preserve-env",
        "close-from chdir group host prompt chroot role type command-timeout other-user user auth-type login-class",
    ),
    "doas": Options("nsL", "aCu"),
    "timeout": Options("pfv", "ks", "preserve-status foreground verbose", "kill-after signal", operands=1),
    "nice": Options("0123456789", "n", "", "adjustment"),
    "ionice": Options("t", "cnpPu", "ignore", "class classdata pid pgid uid"),
    "nohup": Options(),
    "setsid": Options("cfw", "", "ctty fork wait"),
    "stdbuf": Options("", "ioe", "", "input output error"),
    "time": Options("apvV", "fo", "append portability verbose quiet", "format output", writes="o output"),
    "xargs": Options(
        "0oprtx",
        "adEILnPsJRS",
        "null no-run-if-empty interactive open-tty verbose exit show-limits replace max-lines eof help version",
        "arg-file delimiter max-args max-chars max-procs",
        optional="eil",
    ),
    "env": Options(
        "i0v",
        "uCSP",
        "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
        "unset chdir split-string",
        optional="",
    ),
    "command": Options("p"),
    "builtin": Options(),
    # Its -a, as that of env, gives another name to the program, and many a program is what it is called.
    "exec": Options("cl"),
    "taskset": Options("apc", "", "all-tasks pid cpu-list", operands=1),
    "caffeinate": Options("dimsu", "tw"),
    "gtimeout": Options("pfv", "ks", "preserve-status foreground verbose", "kill-after signal", operands=1),
}

RUNNERS = frozenset(
    ["chroot", "unshare", "nsenter", "strace", "ltrace", "chpst", "systemd-run", "runuser", "su", "parallel",
     "entr", "watch", "flock", "script", "ssh", "prlimit", "valgrind", "catchsegv", "linux32", "linux64",
     "setarch", "unbuffer", "chronic", "fakeroot", "torsocks", "proxychains4", "dbus-run-session", "xvfb-run",
     "firejail", "cpulimit", "busybox", "toybox"]
)  # fmt: skip
"""Programs that run others, and always ask: it need not be exact what they run."""
PLACES = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


@frozen
class Line:
    """A command line read by its options: those seen with their values, and where the operands begin."""

    seen: tuple[tuple[str, Word | None], ...]
    rest: tuple[Word, ...]

    def has(self, *names: str) -> bool:
        """Whether one of the options stands there."""
        return any(name in names for name, _ in self.seen)

    def values(self, *names: str) -> list[Word]:
        """The values given to these options."""
        return [value for name, value in self.seen if name in names and value is not None]


def program(word: Word) -> str:
    """The name by which ``word`` is looked up as a program that runs others: "" when it is not one of the system's."""
    if word.text is None or word.glob:
        return ""
    folder, _, name = word.text.rpartition("/")
    if not name:
        return ""
    return name if (folder in PLACES and (folder or "/" not in word.text)) else ""


def read(options: Options, words: Sequence[Word]) -> Line:
    """``words`` after the program's name, up to the first that is no option."""
    seen: list[tuple[str, Word | None]] = []
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
            value = Word(attached, word.raw) if attached is not None else None
        else:
            flags, name, takes, attached = _short(options, text)
            seen.extend((flag, None) for flag in flags)
            value = Word(attached, word.raw) if attached else None
        if takes and value is None:
            if at >= len(words):
                raise Unreadable(f"the option {text!r} has no value")
            value = words[at]
            if several(value):
                raise Unreadable(f"the value of {text!r} may be several words")
            at += 1
        if name:
            seen.append((name, value))
    return Line(tuple(seen), tuple(words[at:]))


def _long(options: Options, text: str) -> tuple[str, bool, str | None]:
    name, equals, attached = text[2:].partition("=")
    flags, valued = options.long.split(), options.long_valued.split()
    if name in valued or (not equals and name in flags):
        return name, name in valued, attached if equals else None
    if name in flags:
        return name, False, attached
    close = [known for known in (*flags, *valued) if known.startswith(name)]
    if len(close) != 1:
        raise Unreadable(f"the option {text[:40]!r} is not known")
    return close[0], close[0] in valued, attached if equals else None


def _short(options: Options, text: str) -> tuple[str, str, bool, str]:
    """The flags in a cluster, then the option with a value that ends it, and what is attached to that."""
    for index, letter in enumerate(text[1:], 1):
        if letter in options.valued:
            return text[1:index], letter, True, text[index + 1 :]
        if letter in options.optional:
            return text[1:index], letter, False, text[index + 1 :]
        if letter not in options.flags:
            raise Unreadable(f"the option {text[:40]!r} is not known")
    return text[1:], "", False, ""


def written(options: Options, line: Line) -> Iterator[Word]:
    """The files that the options make the program write."""
    letters, *names = options.writes.split() or [""]
    for name, value in line.seen:
        if value is not None and (name in names or (len(name) == 1 and name in letters)):
            yield value
