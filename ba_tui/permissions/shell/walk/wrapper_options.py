"""The options of programs that run other programs, as data, and how such a command line is read.

What is run then stands in ``wrappers``. An option that is not listed is trouble: its value might be the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ba_tui.core.values import frozen
from ba_tui.permissions.shell.tokens import UnreadableCommand
from ba_tui.permissions.shell.walk.inner_commands import several
from ba_tui.permissions.shell.walk.values import ShellWord


@frozen
class WrapperOptions:
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
    # Its -a, as that of env, gives another name to the program, and many a program is what it is called.
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
"""Programs that run others, and always ask: it need not be exact what they run."""
PLACES = ("", "/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")


@frozen
class OptionLine:
    """A command line read by its options: those seen with their values, and where the operands begin."""

    seen: tuple[tuple[str, ShellWord | None], ...]
    rest: tuple[ShellWord, ...]

    def has(self, *names: str) -> bool:
        """Whether one of the options stands there."""
        return any(name in names for name, _ in self.seen)

    def values(self, *names: str) -> list[ShellWord]:
        """The values given to these options."""
        return [value for name, value in self.seen if name in names and value is not None]


def program(word: ShellWord) -> str:
    """The name by which ``word`` is looked up as a program that runs others: "" when it is not one of the system's."""
    if word.text is None or word.glob:
        return ""
    folder, _, name = word.text.rpartition("/")
    if not name:
        return ""
    return name if (folder in PLACES and (folder or "/" not in word.text)) else ""


def read(options: WrapperOptions, words: Sequence[ShellWord]) -> OptionLine:
    """``words`` after the program's name, up to the first that is no option."""
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
    """The flags in a cluster, then the option with a value that ends it, and what is attached to that."""
    for index, letter in enumerate(text[1:], 1):
        if letter in options.valued:
            return text[1:index], letter, True, text[index + 1 :]
        if letter in options.optional:
            return text[1:index], letter, False, text[index + 1 :]
        if letter not in options.flags:
            raise UnreadableCommand(f"the option {text[:40]!r} is not known")
    return text[1:], "", False, ""


def written(options: WrapperOptions, line: OptionLine) -> Iterator[ShellWord]:
    """The files that the options make the program write."""
    letters, *names = options.writes.split() or [""]
    for name, value in line.seen:
        if value is not None and (name in names or (len(name) == 1 and name in letters)):
            yield value
