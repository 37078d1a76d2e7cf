"""What changes the state of a shell: its variables and which of them are certain, its input, and its builtins.

Builtins may run text as code, change how the rest is parsed, or use words in arithmetic; anything unknown is an error.
``wrappers`` handles programs that run others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.listings import listing_of
from ba_tui.permissions.shell.simple_commands import (
    ExpandedRedirect,
    Inner,
    InputSource,
    KnownListing,
    ShellWord,
    joined,
    several,
)
from ba_tui.permissions.shell.tree import Node, Redirection, SimpleCommand, Token, TokenFindings, UnreadableCommand
from ba_tui.permissions.shell.word_values import Several, Values, value_of
from ba_tui.permissions.shell.wrappers import SETTINGS

BuiltinReader: TypeAlias = Callable[[Sequence[ShellWord], TokenFindings], tuple[Inner, ...] | None]
"""Returns the code that a builtin runs, if any. Raises UnreadableCommand."""
ASSIGNING = frozenset(
    ["eval", "source", ".", "mapfile", "readarray", "declare", "typeset", "local", "export", "readonly", "unset", "let",
     "getopts", "wait"]
)  # fmt: skip
"""Builtins that may set variables which their words don't name plainly."""
_SETTING_LETTERS = regex(r"[-+][abefhmuvxBCET]*o?")
_COUNTING = regex(r"%[#'\-+ 0-9.*hjlLqtzZ]*n")
"""Formats with which ``printf`` stores a number in a variable."""
_NAME = regex(r"[A-Za-z_]\w*(?:\[[\w@*]*\])?", re.ASCII)
_NUMERIC = regex(r"\s*[-+]?\w[\w\s.+*/%<>=()-]*", re.ASCII)
_LIST = regex(r"\w+(?:\[.*\])?\+?=\(", re.ASCII | re.DOTALL)
# Variables that bash evaluates as arithmetic when they are set. They differ by version; scripts don't set them.
COMPUTED = frozenset(
    ["RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "OPTIND", "OPTERR", "EPOCHSECONDS", "EPOCHREALTIME",
     "BASHPID", "BASH_SUBSHELL", "BASH_COMPAT", "BASH_XTRACEFD", "COLUMNS", "LINES", "TMOUT", "FUNCNEST", "HISTSIZE",
     "HISTFILESIZE", "IGNOREEOF", "SHLVL", "PPID", "UID", "EUID"]
)  # fmt: skip
# Variables whose value bash, or a program that most commands start, runs.
RUNNING = frozenset(
    ["BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4",
     "BASH_LOADABLES_PATH", "TEXTDOMAIN", "TEXTDOMAINDIR"]
)  # fmt: skip


def code_of_builtin(words: Sequence[ShellWord], findings: TokenFindings) -> tuple[Inner, ...] | None:
    """Return the code that a builtin runs; None if ``words`` begin with no builtin of this module."""
    name = words[0].text or ""
    reader = _BUILTINS.get(name)
    return (reader(words, findings) or ()) if reader else None


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


def _refused(why: str) -> BuiltinReader:
    def refuse(words: Sequence[ShellWord], findings: TokenFindings) -> None:
        if len(words) > 1:
            raise UnreadableCommand(f"{words[0].text!r} {why}")

    return refuse


def _alias(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    if any(word.text is None or "=" in word.text for word in words[1:]):
        raise UnreadableCommand("'alias' changes what the words after it mean")


def _set(words: Sequence[ShellWord], findings: TokenFindings) -> None:
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


def _shopt(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text not in ("-s", "-u", "-q", "-p", "-o", "-so", "-uo") and word.text not in SETTINGS:
            raise UnreadableCommand("'shopt' changes how the rest is read")


def _hash(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text is None or (word.text.startswith("-") and word.text not in ("-r", "-l", "-t")):
            raise UnreadableCommand("'hash' changes which programs are found")


def _compgen(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text is None or re.match(r"-[a-zA-Z]*[CFWPSXGAo]", word.text):
            raise UnreadableCommand("'compgen' may run its arguments")


def _names(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    """Record variables that get unknown values; their subscripts are arithmetic."""
    for word in words:
        if word.text is None or not _NAME.fullmatch(word.text):
            raise UnreadableCommand(f"{word.raw[:40]!r} does not name a variable plainly")
        name = word.text.partition("[")[0]
        findings.changed.append(name)
        for group in (findings.wild, findings.lists, findings.bound):
            group.add(name)


def _read(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    _names(_operands(words[1:], "adinNptu"), findings)


def _mapfile(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    if any(word.text is None or re.match(r"-\w*[Cc]", word.text) for word in words[1:]):
        raise UnreadableCommand("'mapfile -C' runs its arguments")
    _names(_operands(words[1:], "dnOsu"), findings)


def _operands(words: Sequence[ShellWord], valued: str) -> list[ShellWord]:
    """Return words that are names: operands, and the value of ``-a``."""
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


def _printf(words: Sequence[ShellWord], findings: TokenFindings) -> None:
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
            return
        name = ShellWord(text[2:], text) if text != "-v" else words[2] if len(words) > 2 else words[0]
        _names([name], findings)


def _unset(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text is None or not (word.text in ("-f", "-v", "-n") or _NAME.fullmatch(word.text)):
            raise UnreadableCommand("'unset' gets a name that is not plain")


def _test(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for before, word in pairwise(words):
        if before.text in ("-v", "-R") and (word.text is None or not _NAME.fullmatch(word.text)):
            raise UnreadableCommand("'test -v' gets a name that is not plain")
        if before.text is None and several(before) and word.text and "[" in word.text and word.text != "]":
            raise UnreadableCommand("'test' may get an operator known only when it runs")


def _getopts(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    _names(words[2:3], findings)


def _wait(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text and (word.text.startswith("-p") or "[" in word.text):
            raise UnreadableCommand("'wait -p' sets a variable")


def _let(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    for word in words[1:]:
        if word.text is None or not _NUMERIC.fullmatch(word.text):
            raise UnreadableCommand("'let' gets a value that is not plain")
        findings.counted.update(re.findall(r"[A-Za-z_]\w*", word.text))


def _declare(words: Sequence[ShellWord], findings: TokenFindings) -> None:
    options = "".join(word.text[1:] for word in words[1:] if word.text and word.text[0] in "-+")
    if "n" in options and words[0].text in ("declare", "typeset", "local"):
        raise UnreadableCommand("a variable that refers to another one")
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
            raise UnreadableCommand("a list of values is quoted")
        if word.text is None and any(letter in options for letter in "aAi"):
            raise UnreadableCommand(f"{words[0].text!r} reads a value known only when it runs")
        if "i" in options and value:
            _let((words[0], ShellWord(value, value)), findings)


def _plain_name(word: ShellWord) -> str:
    """Return the ``name=`` of a word whose value is unknown before it runs; empty if it has none."""
    match = re.match(r"[\"']?([A-Za-z_]\w*\+?=)", word.raw, re.ASCII)
    return match.group(1) if match else ""


_BUILTINS: Mapping[str, BuiltinReader] = {
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


@dataclass(slots=True)
class ShellScope:
    """The state of one command. ``known``: variables; ``piped``: it reads from another command, whose text or list of
    files is ``given`` if certain; ``certain``: it certainly runs."""

    known: dict[str, str | Several] = field(default_factory=dict[str, "str | Several"])
    wrappers: tuple[str, ...] = ()
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[ExpandedRedirect, ...] = ()
    piped: bool = False
    given: str | KnownListing | None = None
    certain: bool = True
    posix: bool = False
    depth: int = 0
    outgoing: tuple[str, ...] = ()
    """The plain words of the next command of the pipeline."""

    def aside(self) -> ShellScope:
        """Return a scope for a command that runs in parallel or perhaps: its variables are discarded afterwards."""
        found = self.same()
        found.known, found.certain = dict(self.known), False
        return found

    def same(self) -> ShellScope:
        """Return a separate scope with the same state."""
        # ``replace`` takes several times as long, and every command needs one.
        return ShellScope(
            self.known,
            self.wrappers,
            self.assignments,
            self.redirects,
            self.piped,
            self.given,
            self.certain,
            self.posix,
            self.depth,
            self.outgoing,
        )


def note_input(scope: ShellScope, redirects: Sequence[Redirection]) -> None:
    """Record what a shell would read from these redirections."""
    brought = [redirect for redirect in redirects if _brings(redirect)]
    for redirect in brought:
        scope.piped, scope.given = True, None
        if redirect.kind == "here" and redirect.body is not None:
            scope.given = value_of(redirect.body, {})
        elif redirect.kind == "read" and redirect.target.literal() == "/dev/null":
            scope.given = ""
        elif redirect.kind == "copy" and len(redirect.target.runs) == 1 and len(redirect.target.parts) == 1:
            scope.given = listing_of(redirect.target.runs[0])
    if any(redirect.descriptor not in ("", "0") for redirect in brought):
        # A word may name any descriptor, such as /dev/fd/3.
        scope.given = None


def _brings(redirect: Redirection) -> bool:
    """Return whether a redirection provides input."""
    match redirect.kind:
        case "copy":
            target = redirect.target.literal()
            return target == "0" or (redirect.descriptor in ("", "0") and target not in ("1", "2", "-"))
        case "write":
            return redirect.descriptor == "0"
        case _:
            return True


def input_source(scope: ShellScope, fed: bool) -> InputSource:
    """Return the source of a command's input. ``fed``: the whole shell reads from elsewhere."""
    if fed or (scope.piped and not isinstance(scope.given, str)):
        return "unseen"
    return "told" if scope.piped and scope.given else ""


def echoed_text(node: Node) -> str | None:
    """Return the output of a plain ``echo`` or ``printf``; None if it is not plain."""
    if not isinstance(node, SimpleCommand) or node.redirects or node.assignments or not node.words:
        return None
    texts = [value_of(token, {}) for token in node.words]
    if any(token.braces or token.pattern for token in node.words):
        return None
    plain = [text for text in texts if text is not None and "\\" not in text]
    if len(plain) != len(texts) or (len(plain) > 1 and plain[1].startswith("-")):
        return None
    if plain[0] == "echo":
        return " ".join(plain[1:])
    return plain[1] if plain[0] == "printf" and len(plain) == 2 and "%" not in plain[1] else None


MOST_LEARNT = 50
UNCERTAIN = "a variable may be changed in a way that is not certain"

_ASSIGNERS = regex(
    r"\b(?:"
    + "|".join(re.escape(name) for name in ASSIGNING if name != ".")
    + r"|IFS(?!=['\" ]{0,3}\s+read\b))\b|(?:^|[\n;&|(){}!`'\"]|\b(?:then|do|else|time)\b)[ \t]*\.\s|\\\n"
)
"""Commands that may set variables invisibly: then no value is certain."""
_FREE_NAME = regex(r"(?!BASH|EPOCH|COMP|DIRSTACK)(?:[a-z_][A-Za-z0-9_]+|[a-z]|[A-Z][A-Z0-9_]*_[A-Z0-9_]*|[A-Z])")


class Certain:
    """The certain variables of a command with the text ``source``. ``taken``: variables whose unknown value is used."""

    def __init__(self, source: str, findings: TokenFindings) -> None:
        self.source = source
        self.findings = findings
        self.knows = not _ASSIGNERS.search(source)
        self.learnt: set[str] = set()
        self.trusted: dict[str, tuple[int, int]] = {}
        """Variables with a certain value, and how often builtins and assignments set them."""
        self.taken: set[str] = set()

    def known(self, scope: ShellScope) -> Values:
        """Return the variables that are certain in ``scope``."""
        return scope.known if self.knows else {}

    def loop(self, name: str, words: Sequence[ShellWord], scope: ShellScope) -> None:
        """Record that a loop sets ``name`` to each of the words in turn."""
        if not self._once(name):
            return
        if len(words) == 1 and isinstance(words[0].among, KnownListing):
            self._trust(name, words[0].among, scope)
        elif len(words) <= MOST_LEARNT and all(word.text is not None for word in words):
            self._trust(name, tuple(words), scope)

    def _trust(self, name: str, value: str | Several, scope: ShellScope, *, read: bool = False) -> None:
        """Treat the value of a variable as certain; ``changed`` verifies that later. ``read``: the builtin read sets
        it."""
        scope.known[name] = value
        self.trusted[name] = (int(read), len(self.findings.sources.get(name, ())))

    def changed(self) -> bool:
        """Return whether a variable with a certain value is also set by inner code or a builtin."""
        found = self.findings
        return any(
            (found.changed.count(name), len(found.sources.get(name, ()))) != times or name in found.counted
            for name, times in self.trusted.items()
        )

    def take(self, token: Token, scope: ShellScope) -> None:
        """Record the variables whose unknown value is used here."""
        if "$" not in token.raw and not any(part.kind == "variable" for part in token.parts):
            return
        known = self.known(scope)
        if value_of(token, known) is None:
            parts = (part for part in (*token.parts, *token.behind) if part.kind not in ("text", "number"))
            self.taken.update(part.text for part in parts if part.text and part.text not in known)

    def learn(self, command: SimpleCommand, assigned: Sequence[tuple[str, ShellWord]], scope: ShellScope) -> None:
        """Record a variable if nothing else in the whole command can change it."""
        if not (scope.certain and self.knows):
            return
        for found, (name, word) in zip(command.assignments, assigned, strict=True):
            if len(self.learnt) > MOST_LEARNT:
                return
            self.learnt.add(name)
            if isinstance(word.among, KnownListing) and not found.indexed and self._once(name):
                self._trust(name, replace(word.among, held=True), scope)
            # In an assignment, an unquoted tilde is expanded at once.
            if word.text and "~" not in word.raw and not found.indexed and self._once(name):
                self._trust(name, word.text, scope)

    def _once(self, name: str) -> bool:
        """Return whether a variable's name occurs once in the whole command, apart from uses and longer words."""
        if not self.knows or name in self.findings.counted or not _FREE_NAME.fullmatch(name):
            return False
        uses = re.finditer(rf"(?<![\w$./-])(?<!\$\{{){name}(?![\w./-])|\$\{{{name}:?=", self.source)
        return len(list(islice(uses, 2))) == 1

    def read(self, words: Sequence[ShellWord], given: KnownListing, scope: ShellScope) -> None:
        """Record that each line read is a file of the list."""
        texts = [word.text for word in words[1:]]
        if len(texts) > 1 and texts[0] == "-r" and (texts[1:-1] == ["-d", ""]) == given.ended:
            name = texts[-1] or ""
            if (given.ended or len(texts) == 2) and self._once(name):
                self._trust(name, given, scope, read=True)
