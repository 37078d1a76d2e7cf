"""Builtins of the shell that run text as code, change how the rest is read, or compute with what a word says.

Programs that run others stand in ``wrappers``. What cannot be known here is trouble.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import TokenFindings, UnreadableCommand
from ba_tui.permissions.shell.walk.inner_commands import Inner, joined, several
from ba_tui.permissions.shell.walk.values import ShellWord
from ba_tui.permissions.shell.walk.wrappers import SETTINGS

ASSIGNING = frozenset(
    ["eval", "source", ".", "mapfile", "readarray", "declare", "typeset", "local", "export", "readonly", "unset", "let",
     "getopts", "wait"]
)  # fmt: skip
"""Builtins that may set variables which their words do not name plainly."""
_SETTING_LETTERS = regex(r"[-+][abefhmuvxBCET]*o?")
_COUNTING = regex(r"%[#'\-+ 0-9.*hjlLqtzZ]*n")
"""What makes ``printf`` put a number into a variable."""
_NAME = regex(r"[A-Za-z_]\w*(?:\[[\w@*]*\])?", re.ASCII)
_NUMERIC = regex(r"\s*[-+]?\w[\w\s.+*/%<>=()-]*", re.ASCII)
_LIST = regex(r"\w+(?:\[.*\])?\+?=\(", re.ASCII | re.DOTALL)
# Variables that bash computes with when they are set. Which they are differs by version; none is set in earnest.
COMPUTED = frozenset(
    ["RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "OPTIND", "OPTERR", "EPOCHSECONDS", "EPOCHREALTIME",
     "BASHPID", "BASH_SUBSHELL", "BASH_COMPAT", "BASH_XTRACEFD", "COLUMNS", "LINES", "TMOUT", "FUNCNEST", "HISTSIZE",
     "HISTFILESIZE", "IGNOREEOF", "SHLVL", "PPID", "UID", "EUID"]
)  # fmt: skip
# Variables that make bash, or a program that most commands start, run what is in them.
RUNNING = frozenset(
    [
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "PS0",
        "PS1",
        "PS2",
        "PS3",
        "PS4",
        "BASH_LOADABLES_PATH",
        "TEXTDOMAIN",
        "TEXTDOMAINDIR",
    ]
)


def checked(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...] | None:
    """The code that a builtin runs; None when ``words`` begin with no builtin that is looked at here."""
    name = words[0].text or ""
    reader = _BUILTINS.get(name)
    return reader(words, findings) if reader else None


def _eval(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    return (Inner("eval", code=joined(rest), posix=None),) if rest else ()


def _trap(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    rest = list(words[1:])
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if not rest or rest[0].text in ("-l", "-p", "-P", "-", "") or (len(rest) == 1 and rest[0].text):
        return ()
    return (Inner("trap", code=rest[0], posix=None),)


def _refused(why: str) -> Callable[[Sequence[ShellWord], TokenFindings], tuple[Inner, ...]]:
    def refuse(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
        if len(words) > 1:
            raise UnreadableCommand(f"{words[0].text!r} {why}")
        return ()

    return refuse


def _alias(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    if any(word.text is None or "=" in word.text for word in words[1:]):
        raise UnreadableCommand("'alias' changes what the words after it mean")
    return ()


def _set(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    rest = list(words[1:])
    while rest:
        text = rest.pop(0).text
        if text in ("--", "-") or (text and text[0] not in "-+"):
            break
        if text is None or not _SETTING_LETTERS.fullmatch(text):
            raise UnreadableCommand("'set' changes how the rest is read")
        if text.endswith("o") and rest:
            setting = rest.pop(0).text
            if setting not in SETTINGS:
                raise UnreadableCommand("'set -o' changes how the rest is read")
    return ()


def _shopt(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text not in ("-s", "-u", "-q", "-p", "-o", "-so", "-uo") and word.text not in SETTINGS:
            raise UnreadableCommand("'shopt' changes how the rest is read")
    return ()


def _hash(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text is None or (word.text.startswith("-") and word.text not in ("-r", "-l", "-t")):
            raise UnreadableCommand("'hash' changes which programs are found")
    return ()


def _compgen(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text is None or re.match(r"-[a-zA-Z]*[CFWPSXGAo]", word.text):
            raise UnreadableCommand("'compgen' may run its arguments")
    return ()


def _names(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    """Variables set to who knows what; a subscript among them is computed with."""
    for word in words:
        if word.text is None or not _NAME.fullmatch(word.text):
            raise UnreadableCommand(f"{word.raw[:40]!r} does not name a variable plainly")
        name = word.text.partition("[")[0]
        findings.changed.append(name)
        for group in (findings.wild, findings.lists, findings.bound):
            group.add(name)


def _read(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    _names(_operands(words[1:], "adinNptu"), findings)
    return ()


def _mapfile(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    if any(word.text is None or re.match(r"-\w*[Cc]", word.text) for word in words[1:]):
        raise UnreadableCommand("'mapfile -C' runs its arguments")
    _names(_operands(words[1:], "dnOsu"), findings)
    return ()


def _operands(words: Sequence[ShellWord], valued: str) -> list[ShellWord]:
    """Words that are names: operands, and the value of ``-a``, of which there is none too many."""
    found: list[ShellWord] = []
    at = 0
    while at < len(words):
        text = words[at].text
        at += 1
        if text is None or not text.startswith("-") or text in ("-", "--"):
            if text != "--":
                found.append(words[at - 1])
            continue
        for index, letter in enumerate(text[1:], 1):
            if letter in valued:
                if letter == "a":
                    found.append(
                        ShellWord(text[index + 1 :], text)
                        if text[index + 1 :]
                        else words[at]
                        if at < len(words)
                        else words[0]
                    )
                at += not text[index + 1 :]
                break
    return found


def _printf(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    if len(rest) > 1 and rest[0].text is None:
        raise UnreadableCommand("the format of 'printf' is known only when it runs, and may name variables")
    if rest and _COUNTING.search((rest[0].text or "").replace("%%", "")):
        _names(rest[1:], findings)
    if len(words) > 1 and (words[1].text is None or words[1].text.startswith("-v")):
        text = words[1].text
        if text is None:
            if several(words[1]):
                raise UnreadableCommand("'printf' may get an option known only when it runs")
            return ()
        name = ShellWord(text[2:], text) if text != "-v" else words[2] if len(words) > 2 else words[0]
        _names([name], findings)
    return ()


def _unset(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text is None or not (word.text in ("-f", "-v", "-n") or _NAME.fullmatch(word.text)):
            raise UnreadableCommand("'unset' gets a name that is not plain")
    return ()


def _test(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for before, word in pairwise(words):
        if before.text in ("-v", "-R") and (word.text is None or not _NAME.fullmatch(word.text)):
            raise UnreadableCommand("'test -v' gets a name that is not plain")
        if before.text is None and several(before) and word.text and "[" in word.text and word.text != "]":
            raise UnreadableCommand("'test' may get an operator known only when it runs")
    return ()


def _getopts(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    _names(words[2:3], findings)
    return ()


def _wait(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text and (word.text.startswith("-p") or "[" in word.text):
            raise UnreadableCommand("'wait -p' sets a variable")
    return ()


def _let(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    for word in words[1:]:
        if word.text is None or not _NUMERIC.fullmatch(word.text):
            raise UnreadableCommand("'let' gets a value that is not plain")
        findings.counted.update(re.findall(r"[A-Za-z_]\w*", word.text))
    return ()


def _declare(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...]:
    options = "".join(word.text[1:] for word in words[1:] if word.text and word.text[0] in "-+")
    if "n" in options and words[0].text in ("declare", "typeset", "local"):
        raise UnreadableCommand("a variable that stands for another one")
    for word in words[1:]:
        if word.text is not None and word.text.startswith(("-", "+")):
            continue
        name, equals, value = (word.text if word.text is not None else _plain_name(word)).partition("=")
        name = name.removesuffix("+")
        if not _NAME.fullmatch(name):
            if name:
                raise UnreadableCommand(f"{word.raw[:40]!r} does not name a variable plainly")
            findings.wild.add("*")
            continue
        if word.text is None:
            findings.declared.add(name.partition("[")[0])
        if "a" in options.lower():
            findings.lists.add(name.partition("[")[0])
        if word.text is None or not value.isdecimal():
            findings.wild.add(name.partition("[")[0])
        if equals and word.text is not None and _LIST.match(word.text):
            raise UnreadableCommand("a list of values stands in quotes")
        if word.text is None and any(letter in options for letter in "aAi"):
            raise UnreadableCommand(f"{words[0].text!r} reads a value known only when it runs")
        if "i" in options and value:
            _let((words[0], ShellWord(value, value)), findings)
    return ()


def _plain_name(word: ShellWord) -> str:
    """The ``name=`` of a word whose value is known only when it runs; "" when it has none."""
    match = re.match(r"[\"']?([A-Za-z_]\w*\+?=)", word.raw, re.ASCII)
    return match.group(1) if match else ""


_BUILTINS: Mapping[str, Callable[[Sequence[ShellWord], TokenFindings], tuple[Inner, ...]]] = {
    "eval": _eval,
    "trap": _trap,
    "source": _refused("runs a file"),
    ".": _refused("runs a file"),
    "alias": _alias,
    "set": _set,
    "shopt": _shopt,
    "enable": _refused("changes what commands mean"),
    "hash": _hash,
    "bind": _refused("ties commands to keys"),
    "complete": _refused("ties commands to completion"),
    "compopt": _refused("changes completion"),
    "compgen": _compgen,
    "fc": _refused("runs earlier commands"),
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "printf": _printf,
    "unset": _unset,
    "test": _test,
    "[": _test,
    "getopts": _getopts,
    "wait": _wait,
    "let": _let,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "export": _declare,
    "readonly": _declare,
}
