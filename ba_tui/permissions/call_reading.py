"""One simple command held against what is known of its program: does it only read, which files, and what goes beyond.

The knowledge stands in ``known_commands``; which paths are fine, and what a rule covers, in ``judgement``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from ba_tui.core.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.known_commands import FILE, FLAG, MAYBE, VALUE, Entry, Known, fits
from ba_tui.permissions.scripts import problem_of
from ba_tui.permissions.simple import Listing, Word
from ba_tui.permissions.word_paths import TooMany, spellings

_PROGRAM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/")
_FILE_VALUE = regex(r"(?:fileb?://|@|[a-z-]+-file=)(.+)", re.DOTALL)
_NUMBER = regex(r"-\d+")
_ELSEWHERE = regex(r"[^/]+:|[\w-]+(?:\.[\w-]+)+/[^/]+/")
_WORD = regex(r"[A-Za-z0-9][\w:-]*")
_VARIABLE = regex(r"\$\{?[!#]?([A-Za-z_]\w*)")
_OPEN_VARIABLES = frozenset(
    {"HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "HOSTNAME", "SHLVL", "UID", "EUID", "RANDOM",
     "SECONDS", "EPOCHSECONDS", "BASHPID", "OPTIND", "LINENO", "PPID", "TERM", "COLUMNS", "LINES", "TZ", "BASH_VERSION",
     "OSTYPE", "HOSTTYPE", "EDITOR"}
)  # fmt: skip
_MACHINE = regex(r"(?:[a-z][\w+.-]*://)?(?:[^/@\s]+@)?([\w-]+(?:\.[\w-]+)+)(?::\d+)?[/:]", re.IGNORECASE)
_HELP = ("--help", "--version")
_INCLUDES = ("--include", "-g", "--glob", "--iglob")
_RUNNING = frozenset({"run", "exec", "x", "dlx", "tool", "proxy", "ssh", "rsh"})


@frozen
class Beyond:
    """Something that is more than reading. ``at``: its place in argv; ``binding``: a rule must name it to cover it."""

    at: int
    why: str
    binding: bool = True


@dataclass(slots=True)
class Reading:
    """``path``: program and subcommand by their plain names; ``files`` it reads; ``beyond`` what is not just reading;
    ``roots``: folders below which it reads every file (with those names, hidden ones too or not)."""

    path: tuple[str, ...] = ()
    known: bool = False
    files: list[Word] = field(default_factory=list[Word])
    touched: list[Word] = field(default_factory=list[Word])
    """Words of commands that do more than read, which may name files."""
    beyond: list[Beyond] = field(default_factory=list[Beyond])
    roots: list[Word] = field(default_factory=list[Word])
    names: tuple[str, ...] = ()
    hidden: bool = True
    lists: list[Listing] = field(default_factory=list[Listing])
    """Files that it reads out of these."""
    effects: frozenset[str] = frozenset()
    free: bool = False


def plain_name(program: str) -> str:
    """``/usr/bin/ls`` as ``ls``; a program elsewhere keeps its path, for it may be any."""
    for folder in _PROGRAM_FOLDERS:
        if program.startswith(folder) and "/" not in program[len(folder) :]:
            return program[len(folder) :]
    return program


def read_call(argv: Sequence[Word], about: Known) -> Reading:
    """What the call ``argv`` comes to; its program is known by its text."""
    name = plain_name(argv[0].text or "")
    entry = about.programs.get(name)
    if _asks_for_help(name, argv[1:], entry, about):
        return Reading((name,), known=True)
    if entry is None:
        return _unknown(name, argv)
    return _Walk(entry, argv).reading()


def _unknown(name: str, argv: Sequence[Word]) -> Reading:
    reading = Reading((name,), touched=list(argv[1:]))
    reading.beyond.append(Beyond(0, f"`{name}` is not known to only read", binding=False))
    _unresolved(reading, argv[1:], 1)
    return reading


def _unresolved(reading: Reading, words: Sequence[Word], start: int) -> None:
    for at, word in enumerate(words, start):
        if word.text is None and not _substituted_file(word):
            reading.beyond.append(Beyond(at, unresolved(word)))


def unresolved(word: Word) -> str:
    raw = " ".join(word.raw.split())
    return f"what `{raw if len(raw) <= 40 else raw[:40] + '…'}` is becomes known only when it runs"


def perhaps_secret(name: str) -> bool:
    """Whether a variable of the environment may hold a secret; one in small letters is the command's own."""
    return name not in _OPEN_VARIABLES and not name.islower()


def _substituted_file(word: Word) -> bool:
    return word.text is None and word.raw.startswith("<(") and word.raw.endswith(")") and word.raw.count("<(") == 1


def _asks_for_help(name: str, words: Sequence[Word], entry: Entry | None, about: Known) -> bool:
    texts = [word.text or "" for word in words]
    if not texts or any(word.glob for word in words):
        return False
    if len(texts) == 1 and (name in about.asking.get(texts[0], ()) or (entry and texts[0] in _HELP)):
        return True
    if entry is None or not entry.help or len(texts) > 5 or texts[-1] != "--help":
        return False
    return all(_WORD.fullmatch(text) and text not in _RUNNING for text in texts[:-1])


class _Walk:
    """Goes through the words of one call."""

    def __init__(self, entry: Entry, argv: Sequence[Word]) -> None:
        self.entry = entry
        self.argv = argv
        self.found = Reading((entry.name.split()[0],), known=True, effects=entry.effects, free=entry.free)
        self.program = plain_name(argv[0].text or "")
        self.operands: list[tuple[int, Word]] = []
        self.options: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.strange: list[tuple[int, str]] = []

    def reading(self) -> Reading:
        start = self._enter(1)
        entry, found = self.entry, self.found
        if entry.reads:
            # An option before the subcommand counts for it as well.
            noted = {beyond.at for beyond in found.beyond}
            found.beyond += [Beyond(at, self._because(name)) for at, name in self.strange if at not in noted]
        self._options(start)
        found.path = (self.program, *found.path[1:])
        found.effects, found.free = entry.effects, entry.free
        if not entry.reads:
            found.beyond.append(
                Beyond(
                    0,
                    entry.why.replace("{}", self._name()) or f"`{self._name()}` is not known to only read",
                    binding=False,
                )
            )
            found.touched += [word for word in self.argv[start:] if word.text != "--"]
            if "*" in entry.never:
                found.beyond += [Beyond(at, self._because("*")) for at in range(start, len(self.argv))]
        self._unnamed()
        self._assign_operands()
        names = {name for name, _ in self.options}
        if entry.needs and not names & entry.needs:
            found.beyond.append(
                Beyond(0, f"`{self._name()}` only reads with {' or '.join(sorted(entry.needs))}", False)
            )
        for option, others in entry.beside.items():
            if option in names and names.isdisjoint(others.split()):
                found.beyond.append(
                    Beyond(0, f"`{self._name()} {option}` writes unless it has {others.split()[0]}", False)
                )
        if entry.check and (problem := problem_of(entry.check, self.scripts)):
            found.beyond.append(Beyond(len(self.argv), f"`{self._name()}`: {problem}"))
        self._recursion(names)
        if found.beyond and entry.reads:
            # What it does with its words is not known then.
            found.touched += self.argv[start:]
        return found

    def _name(self) -> str:
        return " ".join((self.program, *self.found.path[1:]))

    def _because(self, option: str) -> str:
        reason = self.entry.never.get(option, "")
        shown = self._name() if option in {"*", "-*", "!"} else f"{self._name()} {option}"
        return f"`{shown}` {reason or 'is not known to only read'}"

    def _enter(self, at: int) -> int:
        """Past the options before a subcommand and the subcommand itself; ``entry`` is its then."""
        while self.entry.commands:
            at = self._before(at)
            words: list[str] = []
            for word in self.argv[at : at + 8]:
                if word.text is None or word.glob or (word.text.startswith("-") and not self._named(word.text)):
                    break
                words.append(word.text)
            entry, taken = self.entry.command(tuple(words))
            if entry is None:
                return at
            self.found.path = (*self.found.path, *words[:taken])
            self.entry, at = entry, at + taken
        return at

    def _named(self, text: str) -> bool:
        """Whether an option is itself the name of a subcommand, as in ``unzip -l``."""
        return any(fits(text, word) for word in self.entry.dashed)

    def _before(self, at: int) -> int:
        entry = self.entry
        known = {**entry.options, **entry.before}
        while at < len(self.argv):
            text = self.argv[at].text
            if text is None or not text.startswith("-") or text == "-" or self._named(text):
                break
            at = self._option(at, known)
        return at

    def _options(self, at: int) -> None:
        known = self.entry.options
        while at < len(self.argv):
            word = self.argv[at]
            text = word.text
            if text == "--":
                self.operands += list(enumerate(self.argv[at + 1 :], at + 1))
                return
            if text is None or not text.startswith("-") or text == "-":
                self.operands.append((at, word))
                at += 1
                if self.entry.ends:
                    self.operands += list(enumerate(self.argv[at:], at))
                    return
                continue
            at = self._option(at, known)

    def _option(self, at: int, known: Mapping[str, str]) -> int:
        """Note the option at ``at``; where the next word is."""
        word = self.argv[at]
        text = word.text or ""
        name, equals, value = text.partition("=")
        # A wildcard behind the = can't make it another option.
        if word.glob and ("{" in text or not equals or not name.replace("-", "").isalnum()):
            self._surplus(at, text)
            return at + 1
        if self.entry.dashes or text.startswith("--"):
            kind = known.get(name)
            if kind is None and "--*" in known and not any(each.startswith(name) for each in self.entry.never):
                plain = at + 1 < len(self.argv) and not (self.argv[at + 1].text or "-").startswith("-")
                kind = VALUE if equals or plain else FLAG
            if kind is None and self.entry.dashes and _NUMBER.fullmatch(text) and "-#" in known:
                return at + 1
            if kind is None or (equals and kind == FLAG):
                self._surplus(at, name)
                return at + 1
            return self._valued(at, name, kind, value if equals else None)
        if _NUMBER.fullmatch(text) and "-#" in known:
            return at + 1
        if name in known and len(name) > 2:
            return self._valued(at, name, known[name], value if equals else None)
        return self._cluster(at, text, known)

    def _cluster(self, at: int, text: str, known: Mapping[str, str]) -> int:
        for place, letter in enumerate(text[1:], 1):
            name = f"-{letter}"
            kind = known.get(name)
            rest = text[place + 1 :]
            if kind is None:
                self._surplus(at, name)
                return at + 1
            if kind == MAYBE:
                self.options.append((name, rest or None))
                return at + 1
            if kind != FLAG:
                return self._valued(at, name, kind, rest or None)
            self.options.append((name, None))
        return at + 1

    def _valued(self, at: int, name: str, kind: str, value: str | None) -> int:
        word = Word(value, value) if value is not None else None
        if word is None and kind in {VALUE, FILE} and at + 1 < len(self.argv):
            word = self.argv[at + 1]
            at += 1
            if word.text is None and not _substituted_file(word):
                self.found.beyond.append(Beyond(at, unresolved(word)))
            elif word.text and (grave := self._grave(word.text)):
                # The option before may take no value after all, or only an attached one.
                self.found.beyond.append(Beyond(at, self._because(grave)))
        text = word.text if word else None
        self.options.append((name, text))
        if word is not None and kind == FILE:
            self._file(at, word)
        elif text is not None:
            self._text(at, text)
            if name in self.entry.replaced_by:
                self.scripts.append(text)
        return at + 1

    def _grave(self, text: str) -> str:
        """What no rule covers that does not name it and that ``text`` may be read as; empty for nothing."""
        name = text.partition("=")[0]
        if not text.startswith("-") or text == "-":
            return ""
        short = "" if self.entry.dashes or text.startswith("--") else text[:2]
        long = name if len(name) > 2 and (self.entry.dashes or name.startswith("--")) else ""
        return next(
            (each for each in self.entry.never if each in {short, name} or (long and each.startswith(long))), ""
        )

    def _file(self, at: int, word: Word) -> None:
        self.found.files.append(word)
        text = word.text or ""
        if ("://" in text and not text.startswith("file:")) or (self.entry.remote and _ELSEWHERE.match(text)):
            self.found.beyond.append(Beyond(at, f"`{self._name()} {word.raw}` reaches another machine"))

    def _text(self, at: int, text: str) -> None:
        """A text that may still name a file to many programs: ``@file``, ``file://…``; or another machine."""
        machine = _MACHINE.match(text) if self.entry.hosts else None
        if machine and machine[1].lower() not in self.entry.hosts:
            self.found.beyond.append(Beyond(at, f"`{self._name()}` reaches {machine[1]}"))
        if match := _FILE_VALUE.match(text):
            self.found.files.append(Word(match[1], text))
        if self.entry.check in {"secrets", "ps"}:
            self.scripts.append(text if self.entry.check == "secrets" else f"-{text}")

    def _surplus(self, at: int, name: str) -> None:
        """An option that is not among those of a reader."""
        entry = self.entry
        self.strange.append((at, name))
        if name in entry.covered or (not entry.reads and name not in entry.never and "-*" not in entry.never):
            if entry.reads:
                self.found.beyond.append(Beyond(at, self._because(name), binding=False))
            return
        self.found.beyond.append(
            Beyond(at, self._because("-*" if name not in entry.never and not entry.reads else name))
        )

    def _unnamed(self) -> None:
        """Operands that a rule must name, and their absence: then the program takes its input."""
        if "!" in self.entry.never and not self.operands:
            self.found.beyond.append(Beyond(len(self.argv), self._because("!")))
        for at, word in self.operands[:1] if self.entry.ends else self.operands:
            patterns = (each for each in self.entry.never if each not in {"*", "-*", "!"})
            if pattern := next((each for each in patterns if fnmatchcase(word.text or "", each)), ""):
                self.found.beyond.append(Beyond(at, f"`{self._name()} {word.raw}` {self.entry.never[pattern]}"))

    def _assign_operands(self) -> None:
        kinds = list(self.entry.operands)
        given = {name for name, _ in self.options} & self.entry.replaced_by
        if given and kinds and kinds[0] in {"text", "script"}:
            kinds = kinds[1:]
        for at, word in self.operands:
            kind = kinds[0] if kinds else ""
            if kinds and not kind.endswith("s"):
                kinds = kinds[1:]
            self._operand(at, word, kind)

    def _operand(self, at: int, word: Word, kind: str) -> None:
        found = self.found
        if word.text is None:
            if _substituted_file(word) and kind.startswith("file"):
                return
            if word.among and kind == "files" and self.entry.reads:
                found.lists.append(word.among)
                return
            if not self.entry.free or any(map(perhaps_secret, _VARIABLE.findall(word.raw))):
                found.beyond.append(Beyond(at, unresolved(word)))
            return
        if not kind:
            binding = self.entry.strict or not self.entry.reads
            if self.entry.reads:
                found.beyond.append(Beyond(at, f"`{self._name()} {word.raw}` may change something", binding))
        elif kind.startswith("file"):
            self._file(at, word)
        elif kind.startswith("script"):
            if word.glob:
                found.beyond.append(Beyond(at, unresolved(word)))
            self.scripts.append(word.text)
        elif not self.entry.free:
            self._text(at, word.text)
        elif word.glob and "/" in word.text:
            # The shell lists a folder then.
            self._file(at, word)

    def _recursion(self, names: set[str]) -> None:
        entry = self.entry
        if not entry.recursive or not ("always" in entry.recursive or names & entry.recursive):
            return
        # A folder among them is gone through whole.
        self.found.lists = [replace(each, names=()) for each in self.found.lists]
        self.found.roots = [word for _, word in self.operands if word in self.found.files] or [Word(".", ".")]
        given = [value for name, value in self.options if name in _INCLUDES and value]
        includes = [value for value in given if not value.startswith("!")]
        try:
            wanted = [text for value in includes for text in spellings(Word(value, value, True))]
        except TooMany:
            wanted = ["*"]
        self.found.names = tuple("*" if "\\" in each else each.replace("[^", "[!").strip("/") for each in wanted)
        skips = "hidden" in entry.recursive
        self.found.hidden = not skips or bool(names & {"--hidden", "-.", "-u", "-uu", "-uuu", "--unrestricted"})
