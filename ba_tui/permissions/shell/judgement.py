"""Resolves a shell command: its simple commands with their paths, and why each does more than read.

The final decision is up to rules and modes in ``policy``; ``known_commands`` describes commands. Nothing is run:
project files and repositories are recognised by their names and contents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import clipped
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import PathRefused, TouchedPath, is_secret
from ba_tui.permissions.shell.call_reading import Beyond, CallReading, read_call, unknown_value
from ba_tui.permissions.shell.filter_scripts import OPEN_VARIABLES, shows_no_secrets
from ba_tui.permissions.shell.known_commands import KnownCommands, known, plain_name
from ba_tui.permissions.shell.simple_commands import (
    GROUPED,
    ExpandedCommand,
    ExpandedScript,
    FolderRead,
    InputSource,
    KnownListing,
    ResolvedCommand,
    ShellWord,
    Surplus,
)
from ba_tui.permissions.shell.walker import expand_script
from ba_tui.permissions.shell.word_paths import (
    Disk,
    See,
    TooMany,
    fits_secret,
    has_several_names,
    may_be_secret,
    nameable,
    odd_file_below,
    path_of,
    pieces,
    seems,
)
from ba_tui.resources import read_regular

_LARGEST = 1_000_000


def file_matching(patterns: Sequence[str], folder: Path, root: Path) -> str:
    """Return the name of a file that matches one of ``patterns``, in ``folder`` or a parent up to ``root``; empty for
    none.

    Text after a ``~`` in a pattern must occur in the file.
    """
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


def is_shadowed(name: str, root: Path) -> bool:
    """Return whether the program search path finds a program of the workspace first."""
    search = _search(os.environ.get("PATH", ""), str(root))
    place = next((place for place in search if os.path.lexists(f"{root}/{place}/{name}")), "") if search else ""
    return bool(place)


@lru_cache(maxsize=8)
def _search(path: str, root: str) -> tuple[str, ...]:
    """Return the entries of ``path`` that are in the workspace, relative to its root."""
    places = (
        os.path.relpath(place or ".", root) if place.startswith("/") else place for place in path.split(os.pathsep)
    )
    return tuple(place for place in places if place != ".." and not place.startswith("../"))


def foreign_repository(place: Path, see: Callable[[str, Path], Sequence[TouchedPath]]) -> bool:
    """Return whether git would use settings of a repository other than that of a workspace folder.

    A folder with ``HEAD`` may be a bare repository, and ``commondir`` redirects git; git needs little else.
    """
    place = Path(os.path.realpath(place))
    for folder in (place, *place.parents):
        try:
            seen = see(str(folder), folder)
        except PathRefused:
            return True
        if not any(each.inside for each in seen):
            return False
        if os.path.lexists(folder / "HEAD"):
            return True
        if os.path.lexists(folder / ".git"):
            own = any("." in each.places for each in seen)
            return not own or os.path.lexists(folder / ".git" / "commondir")
    return False


LONGEST_SHOWN = 60
MOST_FOLDERS = 8
_SINKS = regex(r"/dev/(?:null|zero|full)")
"""Files that any command may write. The target of a descriptor is unknown before the command runs."""
_INPUTS = regex(r"/dev/(?:null|zero|full|stdin|fd/\d+|u?random)|/proc/self/fd/\d+")
_INPUT = regex(r"(?:^|[=@:,]|^-\w+)-$|\b(?:dev|proc)/")
_DESCRIPTOR = regex(r"\bdev/fd/|\bproc/")
_SCRIPT = regex(r"(?!-)[\w./+-]*[./][\w./+-]*")
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
_CALLED_SECRET = regex(r"KEY|TOKEN|SECRET|PASS|CRED|AUTH|PRIVATE", re.IGNORECASE)
_COUNTERS = frozenset({"OPTIND", "HISTCMD"})
_NAME = regex(r"([A-Za-z_]\w*)\+?(?:=|$)")
_UNPARTED = regex(r"[^\s*?\[\\]+")
_VARIABLES = ("env", "printenv")
_EXPORTS = ("export", "declare", "typeset", "readonly", "local")


@frozen
class ResolvedScript:
    """``trouble``: why ``commands`` may be incomplete, in one line."""

    commands: tuple[ResolvedCommand, ...]
    trouble: str = ""


@frozen
class _Ground:
    """The context of all simple commands of one command. ``start``: its working directory; ``root``: the workspace's
    root."""

    about: KnownCommands
    root: Path
    start: Path
    see: See
    foreign: Callable[[Path], bool]
    own: frozenset[str]
    grouped: bool
    disk: Disk


def resolve_script(command: str, root: Path, folder: Path, see: See) -> ResolvedScript:
    """Return the resolved commands. ``folder``: the working directory; ``root``: the workspace's root."""
    about = known()
    script = expand_script(command)
    # A script names the same files repeatedly; the first result for a file is used throughout.
    once = cache(see)
    foreign = cache(partial(foreign_repository, see=once))
    ground = _Ground(about, root, folder, once, foreign, script.own, script.grouped, Disk())
    commands = tuple(_Resolution(simple, ground).command() for simple in script.commands)
    if why := _beside(script, about):
        commands = (*commands, _Resolution(ExpandedCommand((), text="a variable"), ground, stops=[why]).command())
    return ResolvedScript(commands, script.trouble)


def _beside(script: ExpandedScript, about: KnownCommands) -> str:
    """Return what is wrong with variables that are set or used outside of simple commands; empty for nothing."""
    for name in sorted(script.bound - about.variables - _COUNTERS):
        if _DANGEROUS.fullmatch(name):
            return f"setting `{name}` may change what commands do"
    taken = script.taken - about.variables - OPEN_VARIABLES
    secret = next((name for name in sorted(taken) if name not in script.own or _CALLED_SECRET.search(name)), "")
    return f"the value of `{secret}` may be a secret" if secret else ""


@dataclass(slots=True)
class _Resolution:
    """Resolves one simple command."""

    simple: ExpandedCommand
    ground: _Ground
    stops: list[str] = field(default_factory=list[str])
    surplus: list[Surplus] = field(default_factory=list[Surplus])
    reads: list[TouchedPath] = field(default_factory=list[TouchedPath])
    writes: list[TouchedPath] = field(default_factory=list[TouchedPath])
    named: list[TouchedPath] = field(default_factory=list[TouchedPath])
    below: list[FolderRead] = field(default_factory=list[FolderRead])
    redirected: bool = False
    loose: str = ""
    unsure: bool = False

    def command(self) -> ResolvedCommand:
        simple = self.simple
        opaque = tuple(name for name in simple.wrappers if name not in self.ground.about.wrappers)
        self._assignments()
        reading = self._reading()
        if reading is not None:
            self._loading(reading)
            self._paths(reading)
            for beyond in reading.beyond:
                self._note(beyond, len(opaque))
        if opaque:
            why = f"`{opaque[0]}` runs the command as another user, elsewhere or with other arguments"
            self.surplus += [Surplus(at, why, binding=True) for at in range(len(opaque) + 1)]
        self._redirects()
        words = tuple(word.text for word in simple.argv)
        path = reading.path if reading else ()
        return ResolvedCommand(
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
            loose=self._loose(reading),
            unsure=self.unsure,
            lists=self._lists(),
        )

    def _takes(self, path: tuple[str, ...]) -> InputSource:
        if not self.simple.incoming or self._only_data(path):
            return ""
        named = any(word.text and _DESCRIPTOR.search(word.text) for word in self.simple.argv)
        return "unseen" if named else self.simple.incoming

    def _only_data(self, path: tuple[str, ...]) -> bool:
        """Return whether its input can't control what it does."""
        words = [word.text for word in self.simple.argv]
        if any(surplus.binding for surplus in self.surplus):
            return False
        if any(word is None or _INPUT.search(word) for word in words):
            return False
        if any(path[:count] in self.ground.about.data for count in (1, 2)):
            return True
        script = "".join(word or "" for word in words[1:2])
        named = bool(path) and path[0] in self.ground.about.scripts and _SCRIPT.fullmatch(script)
        return bool(named) and all(seen.inside for seen in self.named)

    @staticmethod
    def _rest(path: tuple[str, ...], words: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """Return the words after the subcommand."""
        if len(path) < 2:
            return words[1:]
        last = next((at for at in range(len(words) - 1, 0, -1) if words[at] == path[-1]), 0)
        first = next((at for at, word in enumerate(words) if at and word == path[-1]), last)
        return words[first + 1 :]

    @property
    def folder(self) -> Path | None:
        folder, start = self.simple.folder, self.ground.start
        return start if folder == "" else None if folder is None else start / os.path.expanduser(folder)  # noqa: PTH111 - must not raise

    def _note(self, beyond: Beyond, shift: int) -> None:
        self.surplus.append(Surplus(beyond.at + shift, beyond.why, beyond.binding))

    def _assignments(self) -> None:
        simple = self.simple
        for name, value in simple.assignments:
            if self._plain(name, value.text) or (name == "IFS" and simple.argv and simple.argv[0].text == "read"):
                continue
            if simple.argv or name in self.ground.about.variables or _DANGEROUS.fullmatch(name.upper()):
                self.stops.append(f"setting `{name}` may change what commands do")

    def _plain(self, name: str, value: str | None) -> bool:
        """Return whether a variable only changes appearance. Some of these may also hold a path to messages."""
        harmless = name in self.ground.about.variables and _SETTING.fullmatch(value or "")
        return bool(harmless) or (value == "" and f"{name}=" in self.ground.about.variables)

    def _reading(self) -> CallReading | None:
        argv = self.simple.argv
        if not argv:
            return None
        first = argv[0]
        if first.text is None or first.glob or not first.text:
            self.stops.append(unknown_value(ShellWord(None, first.raw)) if first.raw else "it names no program")
            return None
        if first.text in _EXPORTS and self._exports(argv[1:]):
            return CallReading((first.text,), known=True)
        if first.text in _VARIABLES and len(argv) == 1 and shows_no_secrets(self.simple.outgoing):
            return CallReading((first.text,), known=True, loose=f"`{first.text}` prints the environment")
        return read_call(argv, self.ground.about, self.ground.own)

    def _exports(self, words: Several[ShellWord]) -> bool:
        if not words:
            # Without arguments it prints all variables.
            return False
        for word in words:
            name = _NAME.match(word.text or word.raw)
            if name is None:
                return False
            if not self._plain(name[1], word.text and word.text[name.end() :]):
                if name[1] in self.ground.about.variables or _DANGEROUS.fullmatch(name[1].upper()):
                    self.stops.append(f"setting `{name[1]}` may change what commands do")
                return False
        return True

    def _loading(self, reading: CallReading) -> None:
        """Note that a program runs code named by project files, whatever its arguments."""
        if (folder := self.folder) is None:
            return
        for call, files in self.ground.about.loads.get(reading.path[0], ()):
            if reading.path[: len(call)] == call and (found := file_matching(files, folder, self.ground.root)):
                reading.beyond.append(Beyond(0, f"`{call[0]}` would run code that {found} names", binding=False))

    def _paths(self, reading: CallReading) -> None:
        folder = self._place(reading)
        if folder is None:
            self.stops.append("its folder is known only when it runs")
            return
        # For a well-known program, words are complete file names; for others, pieces of them may be file names.
        known_well = reading.path[0] in self.ground.about.plain
        for word in reading.files:
            self._look(word, self.reads, folder, pieced=not known_well)
        writing = "outs" in reading.effects
        for word in reading.touched:
            option = (word.text or "").startswith("-")
            self._look(word, self.writes if writing and not option else self.named, folder, loose=True)
        if reading.path[0] == "git":
            self._repository(folder)
        if reading.roots and (name := next(filter(fits_secret, reading.names), "")):
            self.surplus.append(Surplus(len(self.simple.argv), f"`{name}` may fit a file that holds secrets", True))
        for word in reading.roots:
            for text in self._texts(word, folder):
                self.below.append(FolderRead(folder / text, reading.names, reading.hidden, reading.follows))
        if reading.whole:
            self.below.append(FolderRead(self.ground.root))
        for listing in reading.lists:
            self._listed(listing, folder)

    def _place(self, reading: CallReading) -> Path | None:
        """Return the folder in which it reads: its working directory, changed by options in turn."""
        folder = self.folder
        if folder is not None and folder != self.ground.root:
            self._look(ShellWord(".", "."), self.reads, folder)
        for word in reading.folders:
            if folder is None or word.text is None or word.glob or len(reading.folders) > MOST_FOLDERS:
                return None
            self._look(word, self.reads, folder)
            folder /= path_of(word, word.text)
        return folder

    def _lists(self) -> bool:
        """Return whether the program shows names and sizes of files, but no contents."""
        argv = self.simple.argv
        return bool(argv) and plain_name(argv[0].text or "") in self.ground.about.listers

    def _texts(self, word: ShellWord, folder: Path) -> list[str]:
        """Return the paths that ``word`` expands to, as the program receives them."""
        if word.text is None:
            return []
        text = path_of(word, word.text)
        try:
            texts = self.ground.disk.matches(text, folder, quoted=word.raw != text) if word.glob else [text]
        except TooMany:
            texts = []
        if not texts or (word.split and not all(map(_UNPARTED.fullmatch, texts))):
            self.stops.append(unknown_value(word))
        return texts

    def _look(
        self, word: ShellWord, into: list[TouchedPath], folder: Path, *, loose: bool = False, pieced: bool = False
    ) -> None:
        """Record the paths that ``word`` may name. ``loose``: it may be no path; ``pieced``: a piece may be one."""
        texts = self._texts(word, folder)
        if word.glob and self._lists():
            # A pattern may also match a file with secrets, whose name and size are not secret.
            texts = [text for text in texts if text[0] == "/" or ".." in text or not is_secret(folder / text)]
            word = replace(word, glob=False)
        if word.glob and not loose and any(text.startswith("-") for text in texts):
            self.stops.append(f"`{word.raw}` fits a file whose name reads like an option")
        if word.glob and may_be_secret(word.text or ""):
            self.surplus.append(Surplus(len(self.simple.argv), f"`{word.raw}` may fit a file that holds secrets", True))
        elif word.glob and may_be_secret(word.text or "", anyhow=True):
            self._loosen(f"`{word.raw}` may fit a file that holds secrets")
        for text in texts:
            self._see(text, into, folder)
            for piece in pieces(text) if loose or pieced else ():
                self._see(piece, self.writes if into is self.writes else self.named, folder)

    def _see(self, text: str, into: list[TouchedPath], folder: Path) -> None:
        if not nameable(text) or (_SINKS if into is self.writes else _INPUTS).fullmatch(text):
            return
        try:
            into.extend(self.ground.see(os.path.join(folder, text), folder))  # noqa: PTH118 - for each word of a command
            if into is not self.reads and text.lower().startswith(("file:", "~")):
                into.extend(self.ground.see(text, folder))
        except PathRefused:
            shown = repr(clipped(text, LONGEST_SHOWN))
            self.stops.append(f"the path {shown} can't be resolved")

    def _redirects(self) -> None:
        for redirect in self.simple.redirects:
            target, write = redirect.target, redirect.kind == "write"
            if not write and isinstance(target.among, tuple) and self.folder is not None:
                for word in target.among:
                    self._look(word, self.reads, self.folder)
            elif target.text is None or target.glob:
                self.stops.append(unknown_value(ShellWord(None, target.raw)))
            elif (_SINKS if write else _INPUTS).fullmatch(target.text):
                continue
            elif target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                self.stops.append("it connects to another machine")
            elif (folder := self.folder) is None:
                self.stops.append("its folder is known only when it runs")
            else:
                self.redirected = True
                self._see(path_of(target, target.text), self.writes if write else self.reads, folder)

    def _listed(self, listing: KnownListing, folder: Path) -> None:
        """Record the files that another command lists and this one reads."""
        for root in listing.roots:
            self._look(ShellWord(root, root), self.reads, folder)
        if listing.held:
            self._unsure("names that another command lists are known only when it runs")
        # Uncertain names are resolved in the working directory, wherever they were listed.
        for root in listing.roots[:1] if listing.held else listing.roots:
            place = folder / os.path.expanduser(root)  # noqa: PTH111 - must not raise
            self.below.append(FolderRead(place, listing.names))
            found = odd_file_below(place, listing, partial(seems, self.ground.see))
            if found and found.held:
                self._unsure(f"of the files that it gets, {found.why}")
            elif found:
                self.stops.append(f"of the files that it gets, {found.why}")

    def _loosen(self, why: str) -> None:
        self.loose = self.loose or why

    def _unsure(self, why: str) -> None:
        """Note that words may expand to forbidden files or options, so that only *reading* covers the command."""
        self.unsure = True
        self._loosen(why)

    def _repository(self, folder: Path) -> None:
        """Refuse git in another repository, whose settings may run programs."""
        if self.ground.foreign(folder):
            self.stops.append("`git` would use the settings of another repository")

    def _loose(self, reading: CallReading | None) -> str:
        """Return why it may run without asking only in a sandbox; empty if it may anywhere."""
        if self.ground.grouped:
            return GROUPED
        programs = (*self.simple.wrappers, reading.path[0]) if reading else self.simple.wrappers
        if own := next((name for name in programs if is_shadowed(name, self.ground.root)), ""):
            return f"`{own}` may be a program of this folder"
        if self.loose or (reading and reading.loose):
            return self.loose or (reading.loose if reading else "")
        twin = next((seen for seen in self.reads if has_several_names(seen.path)), None)
        return f"{twin.shown} has hard links, which may be files with secrets" if twin else ""


def _each_once(files: list[TouchedPath]) -> tuple[TouchedPath, ...]:
    return tuple(files) if len(files) < 2 else tuple(dict.fromkeys(files))
