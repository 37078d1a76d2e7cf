"""What is thought of a shell command: its simple commands with their paths, and why each of them is more than reading.

Rules and modes have the last word in ``policy``; what commands are known to do stands in ``known_commands``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.call_reading import Beyond, Reading, perhaps_secret, read_call, unresolved
from ba_tui.permissions.known_commands import Known, known
from ba_tui.permissions.parts import Below, Part, Surplus
from ba_tui.permissions.paths import PathRefused
from ba_tui.permissions.shell_grammar import analyse
from ba_tui.permissions.simple import Analysis, Incoming, Listing, Simple, Word
from ba_tui.permissions.word_paths import TooMany, matches, may_be_secret, odd_below, pieces, secrets_below, spellings
from ba_tui.resources import read_regular

if TYPE_CHECKING:
    from ba_tui.permissions.rules import Seen

See = Callable[[str, Path], "Several[Seen]"]
"""The paths that a text names from a folder, as written and as links lead. Raises PathRefused."""

_HARMLESS_FILES = regex(r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty|fd/\d+|u?random)|/proc/self/fd/\d+|-")
_INPUT = regex(r"(?:^|[=@:,]|^-\w+)-$|\b(?:dev|proc)/")
_DESCRIPTOR = regex(r"\bdev/fd/|\bproc/")
_SCRIPT = regex(r"(?!-)[\w./+-]*[./][\w./+-]*")
_READ_ONLY_FILES = regex(r"/dev/(?:null|stdout|stderr|tty|fd/\d+)")
_PATHLIKE = regex(r"[/.~]|^file:|^\w+$")
_DANGEROUS = regex(
    r"(?:PATH|CDPATH|IFS|ENV|BASH.*|SHELL.*|PS4|PROMPT.*|LD_.*|DYLD_.*|GIT_.*|.*PAGER.*|LESS.*|EDITOR|VISU"
    r"AL|.*EDITOR|PYTHON.*|NODE_.*|PERL.*|RUBY.*|JAVA.*|.*_OPTIONS|.*_OPTS|.*FLAGS|SSH_.*|HOME|TMP.*|TEMP."
    r"*|.*PROXY|RIPGREP.*|GREP_.*|TAR_.*|MAN.*|BROWSER|FZF_.*|AWS_.*|AZURE_.*|CLOUDSDK_.*|GOOGLE_.*|KUBE.*"
    r"|HELM_.*|DOCKER_.*|GH_.*|GITHUB_.*|CARGO.*|RUST.*|NPM_.*|PIP_.*|UV_.*|CC|CXX|CPP|MAKE.*|XDG_.*|.*TER"
    r"MINFO|LOCPATH|NLSPATH|GCONV.*|OPENSSL.*|SSL_.*|CURL_.*|WGET.*|TERRAFORM.*|TF_.*|PG.*|MYSQL.*|GLOBIGN"
    r"ORE|POSIXLY.*|HIST.*|INPUTRC|FCEDIT|OPTARG|OPTIND|EXECIGNORE|FIGNORE|FUNCNEST|TIMEFORMAT|ZDOTDIR|HOS"
    r"TFILE|MAIL.*)"
)
_SETTING = regex(r"(?![./])(?!.*\.\.)[\w.,:;+@%=* /-]*")
_LARGEST = 1_000_000
_COUNTERS = frozenset({"OPTIND", "HISTCMD"})
_NAME = regex(r"([A-Za-z_]\w*)\+?(?:=|$)")
_REPOSITORY = ("HEAD", "objects", "refs")
_EXPORTS = ("export", "declare", "typeset", "readonly", "local")


@frozen
class Study:
    """``trouble``: why ``parts`` may not be all that runs, one line."""

    parts: tuple[Part, ...]
    trouble: str = ""


def study(command: str, root: Path, folder: Path, see: See) -> Study:
    """``folder`` is where the command would run, ``root`` the workspace's."""
    about = known()
    analysis = analyse(command)
    trouble = analysis.trouble or ("a group in parentheses runs in a shell of its own" if analysis.grouped else "")
    # A script names the same files again and again; what was found when one was first named holds for all of it.
    once = cache(see)
    foreign = cache(_own_repository)
    parts = tuple(_Simple(simple, about, root, folder, once, foreign).part() for simple in analysis.commands)
    if why := _beside(analysis, about):
        simple = _Simple(Simple((), text="a variable"), about, root, folder, once, foreign, stops=[why])
        parts = (*parts, simple.part())
    return Study(parts, trouble)


def _beside(analysis: Analysis, about: Known) -> str:
    """What is wrong with variables that are set or used where no command names them."""
    for name in sorted(analysis.bound - about.variables - _COUNTERS):
        if _DANGEROUS.fullmatch(name):
            return f"setting `{name}` may change what commands do"
    secret = next((name for name in sorted(analysis.taken - about.variables) if perhaps_secret(name)), "")
    return f"what is in `{secret}` may be a secret" if secret else ""


@dataclass(slots=True)
class _Simple:
    """One simple command on its way to a ``Part``."""

    simple: Simple
    about: Known
    root: Path
    start: Path
    see: See
    foreign: Callable[[Path, Path], bool]
    stops: list[str] = field(default_factory=list[str])
    surplus: list[Surplus] = field(default_factory=list[Surplus])
    reads: list[Seen] = field(default_factory=list["Seen"])
    writes: list[Seen] = field(default_factory=list["Seen"])
    named: list[Seen] = field(default_factory=list["Seen"])
    below: list[Below] = field(default_factory=list[Below])
    redirected: bool = False

    def part(self) -> Part:
        simple = self.simple
        opaque = tuple(name for name in simple.wrappers if name not in self.about.wrappers)
        self._assignments()
        reading = self._reading()
        if reading is not None:
            self._loading(reading)
            self._paths(reading)
            self._repository(reading)
            for beyond in reading.beyond:
                self._note(beyond, len(opaque))
        if opaque:
            why = f"`{opaque[0]}` changes who or where a command runs, or gives it words"
            self.surplus += [Surplus(at, why, binding=True) for at in range(len(opaque) + 1)]
        self._redirects()
        words = tuple(word.text for word in simple.argv)
        path = reading.path if reading else ()
        return Part(
            words=(*opaque, *words),
            plain=(*path, *self._rest(path, words)) if path else (),
            wrappers=simple.wrappers,
            text=" ".join(simple.text.split()),
            known=reading.known if reading else not simple.argv,
            surplus=tuple(self.surplus),
            reads=_each_once(self.reads),
            writes=_each_once(self.writes),
            named=_each_once(self.named),
            below=tuple(self.below),
            stops=self.stops[0] if self.stops else "",
            effects=reading.effects if reading else frozenset(),
            unread=" ".join(word.raw for word in simple.argv if word.text is None),
            redirected=self.redirected,
            takes=self._takes(path),
        )

    def _takes(self, path: tuple[str, ...]) -> Incoming:
        if not self.simple.incoming or self._only_data(path):
            return ""
        named = any(word.text and _DESCRIPTOR.search(word.text) for word in self.simple.argv)
        return "unseen" if named else self.simple.incoming

    def _only_data(self, path: tuple[str, ...]) -> bool:
        """Whether what comes in can't tell it what to do."""
        words = [word.text for word in self.simple.argv]
        if any(surplus.binding for surplus in self.surplus):
            return False
        if any(word is None or _INPUT.search(word) for word in words):
            return False
        if any(path[:count] in self.about.data for count in (1, 2)):
            return True
        script = "".join(word or "" for word in words[1:2])
        named = bool(path) and path[0] in self.about.scripts and _SCRIPT.fullmatch(script)
        return bool(named) and all(seen.inside for seen in self.named)

    @staticmethod
    def _rest(path: tuple[str, ...], words: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """The words behind the subcommand."""
        if len(path) < 2:
            return words[1:]
        last = next((at for at in range(len(words) - 1, 0, -1) if words[at] == path[-1]), 0)
        first = next((at for at, word in enumerate(words) if at and word == path[-1]), last)
        return words[first + 1 :]

    @property
    def folder(self) -> Path | None:
        if self.simple.folder == "":
            return self.start
        return None if self.simple.folder is None else self.start / os.path.expanduser(self.simple.folder)  # noqa: PTH111 - must not raise

    def _note(self, beyond: Beyond, shift: int) -> None:
        self.surplus.append(Surplus(beyond.at + shift, beyond.why, beyond.binding))

    def _assignments(self) -> None:
        simple = self.simple
        for name, value in simple.assignments:
            if self._plain(name, value.text):
                continue
            if simple.argv or name in self.about.variables or _DANGEROUS.fullmatch(name.upper()):
                self.stops.append(f"setting `{name}` may change what commands do")

    def _plain(self, name: str, value: str | None) -> bool:
        """Whether a variable only changes how things look. Some may also hold a path, and messages are loaded there."""
        harmless = name in self.about.variables and _SETTING.fullmatch(value or "")
        return bool(harmless) or (value == "" and f"{name}=" in self.about.variables)

    def _reading(self) -> Reading | None:
        argv = self.simple.argv
        if not argv:
            return None
        first = argv[0]
        if first.text is None or first.glob or not first.text:
            self.stops.append(unresolved(Word(None, first.raw)) if first.raw else "it has no program")
            return None
        if first.text in _EXPORTS and self._exports(argv[1:]):
            return Reading((first.text,), known=True)
        return read_call(argv, self.about)

    def _exports(self, words: Several[Word]) -> bool:
        if not words:
            # It prints all variables then.
            return False
        for word in words:
            name = _NAME.match(word.text or word.raw)
            if name is None:
                return False
            if not self._plain(name[1], word.text and word.text[name.end() :]):
                if name[1] in self.about.variables or _DANGEROUS.fullmatch(name[1].upper()):
                    self.stops.append(f"setting `{name[1]}` may change what commands do")
                return False
        return True

    def _loading(self, reading: Reading) -> None:
        """A program that runs what files of the project name, whatever it is told to do."""
        if (folder := self.folder) is None:
            return
        for call, files in self.about.loads.items():
            if reading.path[: len(call)] == call and (found := _lying(files, folder, self.root)):
                reading.beyond.append(Beyond(0, f"`{call[0]}` would run what {found} says", binding=False))

    def _paths(self, reading: Reading) -> None:
        folder = self.folder
        if folder is None:
            self.stops.append("where it runs becomes known only when it runs")
            return
        if folder != self.root:
            self._look(Word(".", "."), self.reads, folder)
        for word in reading.files:
            self._look(word, self.reads, folder)
        writing = "outs" in reading.effects
        for word in reading.touched:
            option = (word.text or "").startswith("-")
            self._look(word, self.writes if writing and not option else self.named, folder, loose=True)
        roots = [word.text for word in reading.roots if word.text is not None]
        self.below += [Below(folder / root, reading.names, reading.hidden) for root in roots]
        if reading.known and not reading.beyond:
            self._search(reading, folder)
        for listing in reading.lists:
            self._listed(listing, folder)

    def _look(self, word: Word, into: list[Seen], folder: Path, *, loose: bool = False) -> None:
        """The paths that ``word`` may name. ``loose``: it may be no path at all, or name one in a piece of it."""
        if word.text is None:
            return
        try:
            texts = [match for text in spellings(word) for match in (matches(text, folder) if word.glob else (text,))]
        except TooMany:
            self.stops.append(f"what `{word.raw}` is becomes known only when it runs")
            return
        if word.glob and not loose and any(text.startswith("-") for text in texts):
            self.stops.append(f"`{word.raw}` fits a file whose name reads like an option")
        if word.glob and may_be_secret(word.text):
            self.surplus.append(Surplus(len(self.simple.argv), f"`{word.raw}` may fit a file that holds secrets", True))
        for text in texts:
            self._see(text, into, folder)
            for piece in pieces(text):
                if piece != text:
                    self._see(piece, self.writes if into is self.writes else self.named, folder)

    def _see(self, text: str, into: list[Seen], folder: Path) -> None:
        if ("://" in text and not text.lower().startswith("file:")) or not _PATHLIKE.search(text):
            return
        if _HARMLESS_FILES.fullmatch(text):
            return
        try:
            into.extend(self.see(text, folder))
        except PathRefused:
            return

    def _redirects(self) -> None:
        for redirect in self.simple.redirects:
            target, write = redirect.target, redirect.kind == "write"
            if target.text is None or target.glob:
                self.stops.append(unresolved(Word(None, target.raw)))
            elif (_READ_ONLY_FILES if write else _HARMLESS_FILES).fullmatch(target.text):
                continue
            elif target.text.startswith("/dev/tcp/") or target.text.startswith("/dev/udp/"):
                self.stops.append("it connects to another machine")
            elif (folder := self.folder) is None:
                self.stops.append("where it runs becomes known only when it runs")
            else:
                self.redirected = True
                self._see(target.text, self.writes if write else self.reads, folder)

    def _listed(self, listing: Listing, folder: Path) -> None:
        """The files that another command lists, which this one reads."""
        for root in listing.roots:
            self._look(Word(root, root), self.reads, folder)
            place = folder / os.path.expanduser(root)  # noqa: PTH111 - must not raise
            self.below.append(Below(place, listing.names))
            if found := odd_below(place, listing, self.root):
                self.stops.append(f"among the files that it is given {found}")

    def _search(self, reading: Reading, folder: Path) -> None:
        for word in reading.roots:
            if word.text is None or not (found := secrets_below(folder / word.text, reading.names, reading.hidden)):
                continue
            what = f"{os.path.relpath(found, folder)}, which holds secrets"
            what = "more files than can be looked through for secrets" if found == "?" else what
            self.surplus.append(Surplus(len(self.simple.argv), f"`{reading.path[0]}` would read {what}", True))

    def _repository(self, reading: Reading) -> None:
        """Another repository may bring settings that run programs; a bare one needs no ``.git`` for that."""
        folder = self.folder
        if reading.path[:1] != ("git",) or folder is None:
            return
        texts = [word.text or "" for word in self.simple.argv]
        inside = [folder / texts[at + 1] for at, text in enumerate(texts[:-1]) if text == "-C"]
        for place in (folder, *inside):
            if self.foreign(place, self.start):
                self.stops.append("`git` would use the settings of another repository")
                return


def _each_once(files: list[Seen]) -> tuple[Seen, ...]:
    return tuple(files) if len(files) < 2 else tuple(dict.fromkeys(files))


def _lying(patterns: Several[str], folder: Path, root: Path) -> str:
    """The name of a file that fits one of ``patterns`` in ``folder`` or above it up to ``root``, and says what stands
    behind a ``~`` there."""
    above = [place for place in folder.parents if place.is_relative_to(root)]
    for place in (folder, *above):
        for pattern in patterns:
            name, _, said = pattern.partition("~")
            if any(place.glob(name)) if "*" in name else (place / name).exists() and _says(place / name, said):
                return name
    return ""


def _says(file: Path, said: str) -> bool:
    try:
        return not said or bool(re.search(said, read_regular(file, _LARGEST).decode("utf-8", "replace")))
    except OSError:
        return True


def _own_repository(place: Path, start: Path) -> bool:
    place = Path(os.path.realpath(place))
    for folder in (place, *place.parents):
        if (folder / ".git" / "commondir").exists():
            # It sends git to the settings of another folder; only worktrees have one, and theirs is no folder.
            return True
        if (folder / ".git").exists():
            return folder.is_relative_to(start) and folder != Path(os.path.realpath(start))
        if all((folder / name).exists() for name in _REPOSITORY):
            return True
    return False
