"""Compares a simple command with what is known of its program: whether it only reads, and which files.

``known_commands`` holds the knowledge; ``judgement`` decides which paths are fine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.permissions.shell.filter_scripts import OPEN_VARIABLES, problem_of, sql_files
from ba_tui.permissions.shell.known_commands import (
    FILE,
    FLAG,
    FOLDER,
    PAIR,
    VALUE,
    CommandEntry,
    KnownCommands,
    fits,
    plain_name,
)
from ba_tui.permissions.shell.simple_commands import KnownListing, ShellWord, several


@frozen
class Beyond:
    """An effect beyond reading. ``at``: its index in argv; ``binding``: only a rule that names it covers it."""

    at: int
    why: str
    binding: bool = True


@dataclass(slots=True)
class CallReading:
    """What a call does.

    - ``path``: program and subcommand by their plain names
    - ``files``: files it reads; ``beyond``: effects beyond reading
    - ``roots``: folders below which it reads every file with matching ``names``, ``hidden`` or not, through links if it
    ``follows`` them
    - ``folders``: working directories, each relative to the one before
    """

    path: tuple[str, ...] = ()
    known: bool = False
    files: list[ShellWord] = field(default_factory=list[ShellWord])
    touched: list[ShellWord] = field(default_factory=list[ShellWord])
    """Words of commands that do more than read, which may name files."""
    beyond: list[Beyond] = field(default_factory=list[Beyond])
    roots: list[ShellWord] = field(default_factory=list[ShellWord])
    names: tuple[str, ...] = ()
    hidden: bool = True
    follows: bool = False
    whole: bool = False
    """Whether it may read any file of the workspace."""
    lists: list[KnownListing] = field(default_factory=list[KnownListing])
    """Listings whose files it reads."""
    folders: list[ShellWord] = field(default_factory=list[ShellWord])
    effects: frozenset[str] = frozenset()
    loose: str = ""
    """Why it is harmless only in a sandbox."""


MOST_NAMES = 32
_INCLUDES = ("--include", "-g", "--glob", "--iglob")
_HIDDEN_TOO = frozenset({"--hidden", "-.", "-u", "-uu", "-uuu", "--unrestricted"})


def note_searched_files(found: CallReading, entry: CommandEntry, options: Sequence[tuple[str, str | None]]) -> None:
    """Note in ``found`` which of its files are folders to search, and which files in them it reads."""
    names = {"always", *(name for name, _ in options)}
    if not names & entry.recursive:
        found.roots = []
        return
    # A listed folder is searched completely.
    found.lists = [replace(each, names=()) for each in found.lists]
    found.roots = found.roots or [ShellWord(".", ".")]
    found.follows = bool(names & entry.follows)
    wanted = [value for name, value in options if name in _INCLUDES and value and not value.startswith("!")]
    unfolded = (name for each in wanted for name in _unfolded(each.replace("[^", "[!").strip("/")))
    found.names = ("*",) if len(wanted) > MOST_NAMES else tuple(unfolded)
    found.hidden = "hidden" not in entry.recursive or bool(names & _HIDDEN_TOO)


def _unfolded(pattern: str) -> list[str]:
    """Return the patterns that braces expand to; any name if braces or a backslash may mean more."""
    before, brace, rest = pattern.partition("{")
    inside, end, after = rest.partition("}")
    if set(before + after) & set("{}\\") or "{" in inside or bool(brace) != bool(end):
        return ["*"]
    return [f"{before}{each}{after}" for each in inside.split(",")]


_FILE_VALUE = regex(r"(?:fileb?://|@|[a-z-]+-file=)(.+)", re.DOTALL)
_NUMBER = regex(r"-\d+")
_ELSEWHERE = regex(r"[^/]+:|[\w-]+(?:\.[\w-]+)+/[^/]+/")
_WORD = regex(r"[A-Za-z0-9][\w:-]*")
_VARIABLE = regex(r"\$\{?[!#]?([A-Za-z_]\w*)")
_UNPARTED = regex(r"[^\s*?\[\\]+")
_BEGUN = regex(r"[\"']?[\w./:@%+,]")
_MACHINE = regex(r"(?:[a-z][\w+.-]*://)?(?:[^/@\s]+@)?([\w-]+(?:\.[\w-]+)+)(?::\d+)?[/:]", re.IGNORECASE)
_HELP = ("--help", "--version")
_RUNNING = frozenset({"run", "exec", "x", "dlx", "tool", "proxy", "ssh", "rsh"})
_GIVEN = "arguments that are known only when it runs need a sandbox"


def read_call(argv: Sequence[ShellWord], about: KnownCommands, own: AbstractSet[str] = frozenset()) -> CallReading:
    """Return what the call ``argv`` does; its program's name is known. ``own``: variables that the command sets."""
    name = plain_name(argv[0].text or "")
    entry = about.programs.get(name)
    if _asks_for_help(name, argv[1:], entry, about):
        return CallReading((name,), known=True, loose="" if name in about.plain else _needs(name))
    if entry is None:
        return _unknown(name, argv)
    reading = _Walk(entry, argv, own).reading()
    if name not in about.plain:
        reading.loose = reading.loose or _needs(name)
    return reading


def _needs(name: str) -> str:
    return f"`{name}` runs unasked only in a sandbox"


def _unknown(name: str, argv: Sequence[ShellWord]) -> CallReading:
    reading = CallReading((name,), touched=list(argv[1:]))
    reading.beyond.append(Beyond(0, f"`{name}` is unknown to ba", binding=False))
    for at, word in enumerate(argv[1:], 1):
        if word.text is None and not _substituted_file(word):
            reading.beyond.append(Beyond(at, unknown_value(word)))
    return reading


def unknown_value(word: ShellWord) -> str:
    return f"the value of `{one_line(word.raw, 40)}` is known only when it runs"


def _substituted_file(word: ShellWord) -> bool:
    return word.text is None and word.raw.startswith("<(") and word.raw.endswith(")") and word.raw.count("<(") == 1


def _asks_for_help(name: str, words: Sequence[ShellWord], entry: CommandEntry | None, about: KnownCommands) -> bool:
    texts = [word.text or "" for word in words]
    if not texts or any(word.glob for word in words):
        return False
    if len(texts) == 1 and (name in about.asking.get(texts[0], ()) or (entry and texts[0] in _HELP)):
        return True
    if entry is None or not entry.help or len(texts) > 5 or texts[-1] != "--help":
        return False
    return all(_WORD.fullmatch(text) and text not in _RUNNING for text in texts[:-1])


class _Walk:
    """Reads the words of one call."""

    def __init__(self, entry: CommandEntry, argv: Sequence[ShellWord], own: AbstractSet[str]) -> None:
        self.entry = entry
        self.argv = argv
        self.own = own
        self.found = CallReading((entry.name.split()[0],), known=True)
        self.program = plain_name(argv[0].text or "")
        self.operands: list[tuple[int, ShellWord]] = []
        self.options: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.strange: list[tuple[int, str]] = []
        self.ended = len(argv)
        """Index of ``--``, which ends the options."""

    def reading(self) -> CallReading:
        start = self._enter(1)
        entry, found = self.entry, self.found
        if entry.reads:
            # An option before the subcommand applies to it as well.
            noted = {beyond.at for beyond in found.beyond}
            found.beyond += [Beyond(at, self._because(name)) for at, name in self.strange if at not in noted]
        self._options(start)
        found.path = (self.program, *found.path[1:])
        found.effects = entry.effects
        dry = bool(entry.dry & {name for name, _ in self.options}) and not found.beyond
        if dry:
            self._loosen(f"`{self._name()}` may run code of the project")
            found.whole = True
        elif not entry.reads:
            why = entry.why.replace("{}", self._name()) or f"`{self._name()}` is unknown to ba"
            found.beyond.append(Beyond(0, why, binding=False))
            found.touched += [word for word in self.argv[start:] if word.text != "--"]
            if "*" in entry.never:
                found.beyond += [Beyond(at, self._because("*")) for at in range(start, len(self.argv))]
        self._unnamed()
        self._assign_operands()
        if dry and any(word.text is None or word.glob for _, word in self.operands):
            found.beyond.append(Beyond(len(self.argv), f"`{self._name()}`: its targets are known only when it runs"))
        self._missing()
        if entry.check and (problem := problem_of(entry.check, self.scripts)):
            found.beyond.append(Beyond(len(self.argv), f"`{self._name()}`: {problem}"))
        if entry.check == "sql":
            found.files += [ShellWord(file, file, glob=True) for file in sql_files(self.scripts)]
        note_searched_files(found, entry, self.options)
        if found.beyond and entry.reads:
            # The use of its words is then unknown.
            found.touched += self.argv[start:]
        return found

    def _missing(self) -> None:
        """Note missing options without which it does more than read."""
        entry, names = self.entry, {name for name, _ in self.options}
        if entry.needs and not names & entry.needs:
            option = min(entry.needs, key=lambda name: (not name.startswith("--"), name != "-l", name))
            why = f"`{self._name()}` may write unless it has {option}"
            self.found.beyond.append(Beyond(0, why, binding=False))
        for option, others in entry.beside.items():
            if option in names and names.isdisjoint(others.split()):
                why = f"`{self._name()} {option}` writes unless it has {others.split()[0]}"
                self.found.beyond.append(Beyond(0, why, binding=False))
        if risky := sorted(names & entry.loose):
            self._loosen(f"`{self._name()} {risky[0]}` runs unasked only in a sandbox")

    def _loosen(self, why: str) -> None:
        self.found.loose = self.found.loose or why

    def _name(self) -> str:
        return " ".join((self.program, *self.found.path[1:]))

    def _because(self, option: str) -> str:
        reason = self.entry.never.get(option, "")
        shown = self._name() if option in {"*", "-*", "!"} else f"{self._name()} {option}"
        return f"`{shown}` {reason}" if reason else f"`{shown}` is unknown to ba"

    def _enter(self, at: int) -> int:
        """Skip the options before a subcommand and the subcommand, whose entry becomes ``entry``; return the next
        index."""
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
        """Return whether an option is itself a subcommand, as in ``unzip -l``."""
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
                self.ended = at
                self.operands += list(enumerate(self.argv[at + 1 :], at + 1))
                return
            if text is None or not text.startswith("-") or text == "-":
                self.operands.append((at, word))
                at += 1
                if self.entry.ends:
                    self.operands += list(enumerate(self.argv[at:], at))
                    return
                continue
            if self.operands and self.entry.reads and not self.entry.dashes and " " not in self.entry.name:
                # Some systems don't accept options after operands.
                self.found.files.append(replace(word, glob=False))
            at = self._option(at, known)

    def _option(self, at: int, known: Mapping[str, str]) -> int:
        """Note the option at ``at``; return the index of the next word."""
        word = self.argv[at]
        text = word.text or ""
        name, equals, value = text.partition("=")
        # A wildcard after the = can't make it another option.
        if word.glob and (not equals or not name.replace("-", "").isalnum()):
            self._surplus(at, text)
            return at + 1
        if _NUMBER.fullmatch(text) and "-#" in known:
            return at + 1
        if self.entry.dashes or text.startswith("--"):
            return self._long(at, name, value if equals else None, known)
        if len(name) > 2 and (name in known or name in self.entry.never):
            return self._valued(at, name, known.get(name), value if equals else None)
        return self._cluster(at, text, known)

    def _long(self, at: int, name: str, value: str | None, known: Mapping[str, str]) -> int:
        """Note a long option. An unknown one counts as a dangerous option that begins with it."""
        never = self.entry.never
        if name not in known and len(name) > 2:
            name = next((each for each in never if each.startswith(name)), name)
        kind = known.get(name)
        if kind is None and "--*" in known and name not in never:
            plain = at + 1 < len(self.argv) and not (self.argv[at + 1].text or "-").startswith("-")
            kind = VALUE if value is not None or plain else FLAG
        return self._valued(at, name, kind, value)

    def _cluster(self, at: int, text: str, known: Mapping[str, str]) -> int:
        for place, letter in enumerate(text[1:], 1):
            name = f"-{letter}"
            kind = known.get(name)
            if kind != FLAG:
                return self._valued(at, name, kind, text[place + 1 :] or None)
            self.options.append((name, None))
        return at + 1

    def _valued(self, at: int, name: str, kind: str | None, value: str | None) -> int:
        """Note an option of this kind, None if unknown; return the index of the next word."""
        attached = value is not None
        if kind is None and name in self.entry.mild:
            following = self.argv[at + 1] if at + 1 < len(self.argv) else ShellWord(None, "")
            given = value if attached else None if following.glob else following.text
            kind = VALUE if given and re.fullmatch(self.entry.mild[name], given) else None
        if kind == PAIR and not attached and at + 1 < len(self.argv) and (called := self.argv[at + 1]).text:
            at, kind = (at + 1, VALUE) if not called.glob and at + 2 < len(self.argv) else (at, None)
        if kind in {None, PAIR} or (kind == FLAG and attached):
            self._surplus(at, name)
            return at + 1
        word = ShellWord(value, value) if value is not None else None
        if word is None and kind in {VALUE, FILE, FOLDER} and at + 1 < len(self.argv):
            at += 1
            word = self.argv[at]
            if word.text and (grave := self._grave(word.text)):
                # The previous option may take no value, or only an attached one.
                self.found.beyond.append(Beyond(at, self._because(grave)))
        text = word.text if word else None
        self.options.append((name, text))
        if word is None:
            return at + 1
        if kind == FOLDER:
            self.found.folders.append(word)
        elif kind == FILE:
            self._operand(at, word, "given file")
        elif text is None:
            self._open(at, word, "value")
        elif word.glob:
            self._file(at, word)
        else:
            self._text(at, text)
            if name in self.entry.replaced_by:
                self.scripts.append(text)
        return at + 1

    def _grave(self, text: str) -> str:
        """Return the dangerous option that ``text`` may be, which only a rule that names it covers; empty for none."""
        name = text.partition("=")[0]
        if not text.startswith("-") or text == "-":
            return ""
        short = "" if self.entry.dashes or text.startswith("--") else text[:2]
        long = name if len(name) > 2 and (self.entry.dashes or name.startswith("--")) else ""
        return next(
            (each for each in self.entry.never if each in {short, name} or (long and each.startswith(long))), ""
        )

    def _file(self, at: int, word: ShellWord) -> None:
        self.found.files.append(word)
        text = word.text or ""
        if ("://" in text and not text.startswith("file:")) or (self.entry.remote and _ELSEWHERE.match(text)):
            self.found.beyond.append(Beyond(at, f"`{self._name()} {word.raw}` reaches another machine"))

    def _text(self, at: int, text: str) -> None:
        """Check a text that may name a file to many programs (``@file``, ``file://…``), or another machine."""
        machine = _MACHINE.match(text) if self.entry.hosts else None
        if machine and machine[1].lower() not in self.entry.hosts:
            self.found.beyond.append(Beyond(at, f"`{self._name()}` reaches {machine[1]}"))
        if match := _FILE_VALUE.match(text):
            self.found.files.append(ShellWord(match[1], text))
        if self.entry.check in {"secrets", "ps"}:
            self.scripts.append(text if self.entry.check == "secrets" else f"-{text}")

    def _surplus(self, at: int, name: str) -> None:
        """Note an unknown option. It may be one of the program's dangerous ones."""
        self.strange.append((at, name))
        if self.entry.reads or self.entry.never:
            option = "-*" if "-*" in self.entry.never and name not in self.entry.never else name
            self.found.beyond.append(Beyond(at, self._because(option)))

    def _unnamed(self) -> None:
        """Note operands that a rule must name, and missing operands, which make the program read its input."""
        if "!" in self.entry.never and not self.operands:
            self.found.beyond.append(Beyond(len(self.argv), self._because("!")))
        for at, word in self.operands[:1] if self.entry.ends else self.operands:
            patterns = (
                each for each in self.entry.never if each not in {"*", "-*", "!"} and (each[0] != "-" or each == "-")
            )
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
                if not any(each.endswith("s") for each in kinds) and several(word) and not _substituted_file(word):
                    # A pattern may expand to too many operands.
                    kind = ""
            self._operand(at, word, kind)

    def _operand(self, at: int, word: ShellWord, kind: str) -> None:
        found = self.found
        if word.text is None:
            self._open(at, word, kind)
        elif not kind:
            if self.entry.reads:
                why = f"`{self._name()} {word.raw}` may change something"
                found.beyond.append(Beyond(at, why, self.entry.strict))
        elif "file" in kind:
            self._file(at, word)
            if kind != "given file":
                found.roots.append(word)
        elif kind.startswith("script"):
            if word.glob:
                found.beyond.append(Beyond(at, unknown_value(word)))
            self.scripts.append(word.text)
        elif word.glob and ("/" in word.text or not self.entry.free):
            # The shell then lists a folder, and each match becomes a word.
            self._file(at, word)
        elif not self.entry.free:
            self._text(at, word.text)

    def _open(self, at: int, word: ShellWord, kind: str) -> None:
        """Handle a word that is unknown before it runs: it is only data if it can be neither an option nor a file."""
        if _substituted_file(word) and "file" in kind:
            return
        if self.entry.reads and isinstance(word.among, tuple):
            for each in word.among:
                if not self._whole(at, each):
                    self.found.beyond.append(Beyond(at, unknown_value(word)))
                self._operand(at, each, kind)
            return
        if self.entry.reads and isinstance(word.among, KnownListing) and "file" in kind:
            self.found.lists.append(word.among)
            return
        ours = all(name in self.own or name in OPEN_VARIABLES for name in _VARIABLE.findall(word.raw))
        if self.entry.free and ours:
            return
        data = kind.startswith("text") and (at > self.ended or _BEGUN.match(word.raw))
        data = data or (kind == "value" and not several(word))
        if not (self.entry.reads and ours and data):
            self.found.beyond.append(Beyond(at, unknown_value(word)))
        self._loosen(_GIVEN)

    def _whole(self, at: int, word: ShellWord) -> bool:
        """Return whether a variable's value stays one word and can't be read as an option."""
        text = word.text or ""
        parted = word.split and not word.glob and not _UNPARTED.fullmatch(text)
        return not parted and (self.entry.free or at > self.ended or text[:1] not in ("-", "+"))
