"""Walks a command as bash would run it and collects the simple commands at any depth: folders, variables, nested code.

``parser`` makes the tree; ``wrappers`` and ``scope`` return what a program or builtin runs. Nothing is looked up or
started.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell import tree
from ba_tui.permissions.shell.listings import listing_in_word, listing_of, prints_folder, reader_of_environment
from ba_tui.permissions.shell.parser import Parser
from ba_tui.permissions.shell.scope import (
    ASSIGNING,
    COMPUTED,
    RUNNING,
    UNCERTAIN,
    Certain,
    ShellScope,
    code_of_builtin,
    echoed_text,
    input_source,
    note_input,
)
from ba_tui.permissions.shell.simple_commands import (
    ExpandedCommand,
    ExpandedRedirect,
    ExpandedScript,
    Inner,
    KnownListing,
    ShellWord,
)
from ba_tui.permissions.shell.tree import (
    Chain,
    CommandList,
    Compound,
    Pipeline,
    Redirection,
    SimpleCommand,
    Token,
    TokenFindings,
    TokenPart,
    UnreadableCommand,
    VariableAssignment,
)
from ba_tui.permissions.shell.witness import unseen
from ba_tui.permissions.shell.word_values import arithmetic_problem, at_home, value_of, words_of
from ba_tui.permissions.shell.wrappers import commands_inside

MOST_FOLDERS = 3

Folders = tuple[str | None, ...]


def moved(folder: str | None, words: Sequence[ShellWord], source: str) -> str | None:
    """Return the folder after ``cd`` from ``folder``; None if it is uncertain.

    Folders are relative to the working directory of the whole command (""); None is unknown before it runs.
    """
    rest = [word for word in words[1:] if word.text not in ("--", "-L", "-e")]
    if len(rest) > 1 or "CDPATH" in source or "HOME" in source:
        return None
    if not rest:
        return "~"
    text = rest[0].text
    if text is None or rest[0].glob or text.startswith("-") or not text:
        return None
    if text.startswith(("/", "~")):
        return posixpath.normpath(text)
    if folder is None:
        return None
    joined = posixpath.normpath(posixpath.join(folder, text))
    return "" if joined == "." else joined


def union_of_folders(*folders: Folders) -> Folders:
    """Return the union of the folders; unknown (None) if there are too many."""
    found = tuple(dict.fromkeys(folder for several in folders for folder in several))
    return (None,) if None in found or len(found) > MOST_FOLDERS else found


MOST_COMMANDS = 2_000
DEEPEST_CODE = 8
_CD = ShellWord("cd", "cd")

_HOME = regex(r"(?<![$\w{])HOME\b")
_PWD = regex(r"(?<![$\w{])PWD\b|\$\{PWD:?=")
_LISTS = frozenset({"COPROC", "MAPFILE", "FUNCNAME", "PIPESTATUS", "DIRSTACK", "GROUPS", "COMP_WORDS", "COMPREPLY"})


class CommandWalk:
    """Collects the simple commands of one command in ``found``."""

    def __init__(self, command: str) -> None:
        self.found: list[ExpandedCommand] = []
        self.findings = TokenFindings()
        self.source = command
        self.values = Certain(command, self.findings)
        self.moved = self.moved_in_function = False
        self.functions: list[tuple[int, int]] = []
        self.fed = False
        self.homeless = bool(_HOME.search(command))
        self.here = not _PWD.search(command)
        """Whether ``PWD`` has the value that the shell sets."""
        self.trouble = ""

    def run(self, command: str) -> ExpandedScript:
        """Walk the whole command."""
        program = Parser(command, self.findings).whole()
        self._visit(program, ShellScope(), ("",))
        self._functions()
        if self.values.changed():
            self.trouble = self.trouble or UNCERTAIN
        self.findings.counted |= COMPUTED & (self.findings.wild | self.findings.sources.keys())
        self.trouble = self.trouble or self._risky() or arithmetic_problem(self.findings)
        if not self.trouble and (name := unseen(command, self.findings.programs)):
            self.trouble = f"ba's two parsers disagree about {name[:40]!r}"
        findings = self.findings
        bound = frozenset(findings.bound | findings.counted)
        taken = frozenset(self.values.taken | findings.counted)
        own = frozenset(findings.bound | findings.sources.keys())
        commands = tuple(dict.fromkeys(self.found))
        return ExpandedScript(commands, self.trouble, tree.has_group(program), bound, taken, own)

    def _risky(self) -> str:
        """Return a problem if a variable whose value the shell runs is set other than by ``NAME=value``."""
        lists = self.findings.declared & (self.findings.lists | _LISTS)
        if lists:
            return f"the list {min(lists)!r} is declared with a value known only when it runs"
        names = RUNNING & (self.findings.wild | self.findings.sources.keys())
        return f"the shell may run the value of {min(names)}" if names else ""

    def _functions(self) -> None:
        """Make the folder of functions unknown: a function runs where it is called."""
        if self.moved_in_function:
            self.found = [replace(simple, folder=None) for simple in self.found]
        elif self.moved:
            for start, end in self.functions:
                self.found[start:end] = [replace(simple, folder=None) for simple in self.found[start:end]]

    # -- structure; each visit gives the folders after success and after failure

    def _visit(self, node: object, scope: ShellScope, folders: Folders) -> tuple[Folders, Folders]:
        match node:
            case SimpleCommand():
                return self._command(node, scope, folders)
            case CommandList():
                for chain in node.items:
                    folders = self._chain(chain, scope, folders)
                return folders, folders
            case Chain():
                after = self._chain(node, scope, folders)
                return after, after
            case Pipeline():
                self._pipeline(node, scope, folders)
                return folders, folders
            case Compound():
                after = self._block(node, scope, folders)
                return after, after
            case _:
                raise UnreadableCommand("a part of it can't be read")

    def _chain(self, chain: Chain, scope: ShellScope, folders: Folders) -> Folders:
        if chain.background:
            scope = scope.aside()
        before = dict(scope.known)
        good, bad = self._visit(chain.items[0], scope, folders)
        first = dict(scope.known)
        certain, all_good = scope.certain, "||" not in chain.operators
        for operator, item in zip(chain.operators, chain.items[1:], strict=True):
            scope.certain = certain and all_good
            start = good if operator == "&&" else bad
            if not start:
                start = folders
            next_good, next_bad = self._visit(item, scope, start)
            if isinstance(item, SimpleCommand) and _leaves(item):
                next_good = next_bad = ()
            good, bad = (
                (next_good, union_of_folders(bad, next_bad))
                if operator == "&&"
                else (union_of_folders(good, next_good), next_bad)
            )
        scope.certain = certain
        if chain.operators:
            scope.known = first
        if chain.background:
            scope.known = before
            return folders
        return union_of_folders(good, bad) or folders

    def _pipeline(self, pipeline: Pipeline, scope: ShellScope, folders: Folders) -> None:
        given: str | KnownListing | None = None
        for index, item in enumerate(pipeline.items):
            part = scope.aside()
            if index:
                part.piped, part.given = True, given
            part.outgoing = (
                reader_of_environment(item, pipeline.items[index + 1]) if index + 1 < len(pipeline.items) else ()
            )
            self._visit(item, part, folders)
            given = echoed_text(item) or listing_of(item)

    def _block(self, block: Compound, scope: ShellScope, folders: Folders) -> Folders:
        for token in block.words:
            self._runs(token.runs, scope, folders)
            self.values.take(token, scope)
        targets = self._redirects(block.redirects, scope, folders)
        if targets:
            self._add(ExpandedCommand((), redirects=targets), scope, folders)
        inner = scope
        if block.redirects or block.kind not in ("group", "time"):
            inner = scope.aside()
            inner.known = scope.known if block.kind == "group" else inner.known
        if block.kind in ("coproc", "sink"):
            inner.piped, inner.given = True, None
        note_input(inner, block.redirects)
        if block.kind in ("coproc", "time"):
            inner = replace(inner, wrappers=(*inner.wrappers, block.name))
        if block.kind == "function":
            return self._function(block, inner, folders)
        if block.kind == "loop":
            return self._loop(block, inner, folders)
        after = folders
        results: Folders = folders if block.kind == "branch" else ()
        for body in block.bodies:
            after = self._visit(body, inner, after)[0]
            results = union_of_folders(results, after)
            if block.kind == "branch":
                after = results
        return folders if block.kind in ("subshell", "coproc", "sink") else results or folders

    def _loop(self, block: Compound, scope: ShellScope, folders: Folders) -> Folders:
        start = len(self.found)
        after = folders
        if block.words and block.name:
            self.values.loop(block.name, [word for token in block.words for word in self._words(token, scope)], scope)
        for body in block.bodies:
            after = self._visit(body, scope, after)[0]
            scope = scope.aside()
        if set(after) <= set(folders):
            return folders
        del self.found[start:]
        for body in block.bodies:
            self._visit(body, scope.aside(), (None,))
        return (None,)

    def _function(self, block: Compound, scope: ShellScope, folders: Folders) -> Folders:
        start, moved = len(self.found), self.moved
        self.moved = False
        scope.known = {}
        scope.piped, scope.given = True, None
        for body in block.bodies:
            self._visit(body, scope, folders)
        self.moved_in_function = self.moved_in_function or self.moved
        self.moved = moved or self.moved
        self.functions.append((start, len(self.found)))
        if block.name in ("cd", "pwd", "pushd", "popd", "exit", "return", "exec", "command", "builtin", "eval"):
            self.trouble = self.trouble or f"a function replaces {block.name!r}"
        return folders

    def _runs(self, runs: Sequence[object], scope: ShellScope, folders: Folders) -> None:
        for run in runs:
            part = scope.aside()
            part.assignments = part.redirects = part.outgoing = ()
            self._visit(run, part, folders)

    # -- simple commands

    def _command(self, command: SimpleCommand, scope: ShellScope, folders: Folders) -> tuple[Folders, Folders]:
        words: list[ShellWord] = []
        for token in command.words:
            self._runs(token.runs, scope, folders)
            words.extend(self._words(token, scope))
        if self.homeless:
            words = [ShellWord(None, word.raw) if word.text and word.text.startswith("~") else word for word in words]
        assigned = tuple((found.name, self._assigned(found, scope, folders)) for found in command.assignments)
        redirects = self._redirects(command.redirects, scope, folders)
        self._running(assigned)
        simple = ExpandedCommand(
            tuple(words),
            (*scope.assignments, *assigned),
            (*scope.redirects, *redirects),
            scope.wrappers,
            text=command.source,
        )
        if not words:
            self.values.learn(command, assigned, scope)
            self._add(simple, scope, folders)
            return folders, folders
        part = scope.same()
        note_input(part, command.redirects)
        if words[0].text == "exec" and any(redirect.kind != "write" for redirect in command.redirects):
            self.fed = True
        count = len(self.found)
        try:
            return self._simple(simple, part, folders)
        except UnreadableCommand as error:
            self.trouble = self.trouble or str(error)
            if len(self.found) == count:
                self._add(simple, part, folders)
            return (None,), (None,)

    def _words(self, token: Token, scope: ShellScope) -> list[ShellWord]:
        words = words_of(self._here(token), self.values.known(scope))
        if len(token.runs) == 1 and len(words) == 1 and words[0].text is None and not words[0].glob:
            return [replace(words[0], among=words[0].among or listing_in_word(token))]
        return words

    def _here(self, token: Token) -> Token:
        """Return ``token`` with a dot for the working directory and a tilde for ``$HOME``."""
        if "HOME" in token.raw and not self.homeless:
            token = at_home(token)
        same = {("unknown", "")} if len(token.runs) == 1 and prints_folder(token.runs[0]) else set[tuple[str, str]]()
        if self.here and "PWD" in token.raw:
            same.add(("variable", "PWD"))
        if not same:
            return token
        dot = TokenPart("text", ".", quoted=True)
        return replace(token, parts=[dot if (part.kind, part.text) in same else part for part in token.parts])

    def _assigned(self, found: VariableAssignment, scope: ShellScope, folders: Folders) -> ShellWord:
        for token in found.items or (found.value,):
            self._runs(token.runs, scope, folders)
            self.values.take(token, scope)
        if found.items is not None or found.append:
            return ShellWord(None, found.value.raw)
        known = self.values.known(scope)
        text = value_of(found.value, known)
        among = listing_in_word(found.value) if text is None else None
        return ShellWord(
            None if text and text.startswith("~") and self.homeless else text, found.value.raw, among=among
        )

    def _redirects(
        self, redirects: Sequence[Redirection], scope: ShellScope, folders: Folders
    ) -> tuple[ExpandedRedirect, ...]:
        found: list[ExpandedRedirect] = []
        for redirect in redirects:
            self._runs(redirect.target.runs, scope, folders)
            if redirect.body is not None:
                self.values.take(redirect.body, scope)
                if redirect.body is not redirect.target:
                    self._runs(redirect.body.runs, scope, folders)
            if redirect.kind in ("read", "write"):
                words = words_of(redirect.target, self.values.known(scope))
                target = words[0] if len(words) == 1 else ShellWord(None, redirect.target.raw)
                found.append(ExpandedRedirect("read" if redirect.kind == "read" else "write", target))
        return tuple(found)

    def _running(self, assigned: Sequence[tuple[str, ShellWord]]) -> None:
        for name, _ in assigned:
            if name in RUNNING or name.startswith("BASH_FUNC"):
                self.trouble = self.trouble or f"the shell may run the value of {name}"

    def _simple(self, simple: ExpandedCommand, scope: ShellScope, folders: Folders) -> tuple[Folders, Folders]:
        words, name = simple.argv, simple.argv[0].text
        if simple.argv[0].glob:
            self.trouble = self.trouble or "the name of a program is a pattern"
        if name in ASSIGNING and scope.known:
            raise UnreadableCommand(UNCERTAIN)
        if name == "read" and isinstance(scope.given, KnownListing):
            self.values.read(words, scope.given, scope)
        if name in ("cd", "chdir"):
            self._add(simple, scope, folders)
            self.moved = True
            return tuple(dict.fromkeys(moved(folder, words, self.source) for folder in folders)), folders
        if name in ("pushd", "popd"):
            self._add(simple, scope, folders)
            self.moved = True
            return (None,), folders
        if name == "trap":
            self._trap(simple, scope)
            return folders, folders
        inner = code_of_builtin(words, self.findings)
        if inner is not None:
            self._add(simple, scope, folders)
            after = folders
            for one in inner:
                after = self._inner(one, simple, scope, folders)
            return after, union_of_folders(folders, after)
        given = None if self.fed else scope.given if scope.piped else ""
        run = commands_inside(words, given)
        if run is None:
            self._add(simple, scope, folders)
            return folders, folders
        if run.itself or not run.inner:
            self._add(replace(simple, argv=run.words) if run.words else simple, scope, folders)
        for one in run.inner:
            self._inner(one, simple, scope, folders)
        return folders, folders

    def _trap(self, simple: ExpandedCommand, scope: ShellScope) -> None:
        """Add the commands of a trap, which run at an unknown time."""
        self._add(simple, scope, ("",) if not self.moved else (None,))
        start = len(self.found)
        for one in code_of_builtin(simple.argv, self.findings) or ():
            self._inner(one, simple, scope, ("",))
        self.functions.append((start, len(self.found)))

    def _inner(self, inner: Inner, simple: ExpandedCommand, scope: ShellScope, folders: Folders) -> Folders:
        if scope.depth >= DEEPEST_CODE:
            raise UnreadableCommand("commands in commands are nested too deeply")
        if inner.folder is None:
            folders = (None,)
        elif inner.folder:
            folders = tuple(moved(folder, (_CD, ShellWord(inner.folder, "")), self.source) for folder in folders)
        self._running(inner.assignments)
        part = scope.aside()
        part.depth += 1
        part.outgoing = ()
        part.wrappers = (*simple.wrappers, inner.wrapper)
        part.assignments = (*simple.assignments, *inner.assignments)
        part.redirects = (*simple.redirects, *inner.redirects)
        if inner.posix is not None:
            part.posix = inner.posix
        if inner.words:
            whole = ExpandedCommand(inner.words, part.assignments, part.redirects, part.wrappers, text=simple.text)
            self._simple(whole, part, folders)
            return folders
        if inner.reads_input:
            self._input(inner, part, folders)
            return folders
        text = inner.code.text if inner.code else None
        if text is None or (inner.code and inner.code.glob):
            raise UnreadableCommand(f"what {inner.wrapper!r} runs is known only when it runs")
        return self._code(text, part, folders)

    def _code(self, text: str, scope: ShellScope, folders: Folders) -> Folders:
        if "\0" in text or "\r" in text:
            raise UnreadableCommand("a text to run contains unusual characters")
        scope.known = {}
        program = Parser(text, self.findings, scope.depth, scope.posix).whole()
        return self._visit(program, scope, folders)[0]

    def _input(self, inner: Inner, scope: ShellScope, folders: Folders) -> None:
        """Add the commands of a shell that reads them from its input."""
        if not (scope.piped or self.fed):
            return
        text = None if self.fed else scope.given
        if not isinstance(text, str):
            raise UnreadableCommand(f"what {inner.wrapper!r} reads and runs is known only when it runs")
        scope.given = None
        scope.redirects = ()
        for line in text.splitlines():
            self._code(line, scope, folders)

    def _add(self, simple: ExpandedCommand, scope: ShellScope, folders: Folders) -> None:
        if len(self.found) > MOST_COMMANDS:
            raise UnreadableCommand("it runs too many commands")
        comes = input_source(scope, self.fed)
        if comes or scope.outgoing or (scope.wrappers and not simple.wrappers):
            wrappers = simple.wrappers or scope.wrappers
            simple = replace(simple, wrappers=wrappers, incoming=comes, outgoing=scope.outgoing)
        if folders == ("",):
            self.found.append(simple)
        else:
            self.found.extend(replace(simple, folder=folder) for folder in folders)


def _leaves(command: SimpleCommand) -> bool:
    return bool(command.words) and command.words[0].bare() in ("exit", "return")


LARGEST = 200_000


def expand_script(command: str) -> ExpandedScript:
    """Return every simple command that ``command`` would run under bash, and why that may be incomplete."""
    unfit = _unfit(command)
    if unfit:
        return ExpandedScript((), unfit)
    walk = CommandWalk(command)
    try:
        return walk.run(command)
    except UnreadableCommand as error:
        return ExpandedScript(tuple(walk.found), str(error))
    except RecursionError:
        return ExpandedScript(tuple(walk.found), "it is nested too deeply")


def _unfit(command: str) -> str:
    """Return why the text can't be parsed reliably; empty if it can."""
    if len(command) > LARGEST:
        return "it is longer than 200 KB"
    if command.isascii() and command.isprintable():
        return ""
    for char in set(command):
        if char == "\0":
            return "it contains a NUL"
        if char not in " \t\n" and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")):
            return f"it contains an invisible character (U+{ord(char):04X})"
    return ""
