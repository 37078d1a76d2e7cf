"""Walks a command as bash would run it and gathers the simple commands: folders, known variables, code in code.

The tree comes from ``shell_syntax``; what a program or builtin runs from ``shell_wrappers`` and ``shell_builtins``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Many
from dataclasses import replace
from itertools import islice

from ba_tui.core.patterns import regex
from ba_tui.permissions.shell_builtins import ASSIGNING, COMPUTED, RUNNING, checked
from ba_tui.permissions.shell_folders import Folders, either, moved
from ba_tui.permissions.shell_inner import Inner
from ba_tui.permissions.shell_listing import listed
from ba_tui.permissions.shell_numbers import uncertain
from ba_tui.permissions.shell_scope import Scope, feed, incoming, printed
from ba_tui.permissions.shell_syntax import Parser
from ba_tui.permissions.shell_tokens import Findings, Token, Unreadable
from ba_tui.permissions.shell_tree import Assignment, Block, Chain, Command, Pipeline, Redirection, Sequence, has_group
from ba_tui.permissions.shell_values import Several, value_of, words_of
from ba_tui.permissions.shell_witness import unseen
from ba_tui.permissions.shell_wrappers import opened
from ba_tui.permissions.simple import Analysis, Listing, Redirect, Simple, Word

MOST_COMMANDS = 2_000
MOST_LEARNT = 50
DEEPEST_CODE = 8
UNCERTAIN = "a variable may be changed in a way that is not certain"
_CD = Word("cd", "cd")

_ASSIGNERS = regex(
    r"\b(?:"
    + "|".join(re.escape(name) for name in ASSIGNING if name != ".")
    + r"|IFS(?!=['\" ]{0,3}\s+read\b))\b|(?:^|[\n;&|(){}!`'\"]|\b(?:then|do|else|time)\b)[ \t]*\.\s|\(\(|\\\n"
)
"""What may set variables in a way that does not show: then no value is certain."""
_FREE_NAME = regex(r"(?!BASH|EPOCH|COMP|DIRSTACK)(?:[a-z_][A-Za-z0-9_]+|[a-z]|[A-Z][A-Z0-9_]*_[A-Z0-9_]*|[A-Z])")
_HOME = regex(r"(?<![$\w{])HOME\b")
_LISTS = frozenset({"COPROC", "MAPFILE", "FUNCNAME", "PIPESTATUS", "DIRSTACK", "GROUPS", "COMP_WORDS", "COMPREPLY"})
_LEAVING = frozenset({"exit", "return"})


class Walk:
    """Gathers the simple commands of one command in ``found``."""

    def __init__(self, command: str) -> None:
        self.found: list[Simple] = []
        self.findings = Findings()
        self.source = command
        self.knows = not _ASSIGNERS.search(command)
        self.moved_in_function = False
        self.functions: list[tuple[int, int]] = []
        self.moved = False
        self.fed = False
        self.learnt: set[str] = set()
        self.trusted: dict[str, tuple[int, int]] = {}
        """Variables whose value is held for certain; how often builtins and assignments set them."""
        self.taken: set[str] = set()
        self.homeless = bool(_HOME.search(command))
        self.trouble = ""

    def run(self, command: str) -> Analysis:
        """Walk all of it."""
        tree = Parser(command, self.findings).whole()
        self._visit(tree, Scope(), ("",))
        self._functions()
        if self._changed():
            self.trouble = self.trouble or UNCERTAIN
        self.findings.counted |= COMPUTED & (self.findings.wild | self.findings.sources.keys())
        self.trouble = self.trouble or self._risky() or uncertain(self.findings)
        if not self.trouble and (name := unseen(command, self.findings.programs)):
            self.trouble = f"two readers differ over {name[:40]!r}"
        findings = self.findings
        bound = frozenset(findings.bound | findings.counted)
        taken, own = frozenset(self.taken | findings.counted), frozenset(findings.bound | findings.sources.keys())
        return Analysis(tuple(dict.fromkeys(self.found)), self.trouble, has_group(tree), bound, taken, own)

    def _trust(self, name: str, value: str | Several, scope: Scope, *, read: bool = False) -> None:
        """Take a variable for what it is set to here, by ``read`` or not; ``_changed`` looks whether that holds."""
        scope.known[name] = value
        self.trusted[name] = (int(read), len(self.findings.sources.get(name, ())))

    def _changed(self) -> bool:
        """Whether a variable whose value was held for certain is set in code within the command, or by a builtin."""
        found = self.findings
        return any(
            (found.changed.count(name), len(found.sources.get(name, ()))) != times or name in found.counted
            for name, times in self.trusted.items()
        )

    def _risky(self) -> str:
        """A variable that the shell runs and that was set in a way other than ``NAME=value``."""
        lists = self.findings.declared & (self.findings.lists | _LISTS)
        if lists:
            return f"the list {min(lists)!r} is declared with a value known only when it runs"
        names = RUNNING & (self.findings.wild | self.findings.sources.keys())
        return f"the shell may run what is in {min(names)}" if names else ""

    def _functions(self) -> None:
        """A function runs where it is called, not where it stands."""
        if self.moved_in_function:
            self.found = [replace(simple, folder=None) for simple in self.found]
        elif self.moved:
            for start, end in self.functions:
                self.found[start:end] = [replace(simple, folder=None) for simple in self.found[start:end]]

    # -- structure; each visit gives the folders after success and after failure

    def _visit(self, node: object, scope: Scope, folders: Folders) -> tuple[Folders, Folders]:
        match node:
            case Command():
                return self._command(node, scope, folders)
            case Sequence():
                for chain in node.items:
                    folders = self._chain(chain, scope, folders)
                return folders, folders
            case Chain():
                after = self._chain(node, scope, folders)
                return after, after
            case Pipeline():
                self._pipeline(node, scope, folders)
                return folders, folders
            case Block():
                after = self._block(node, scope, folders)
                return after, after
            case _:
                raise Unreadable("a part of it is not known")

    def _chain(self, chain: Chain, scope: Scope, folders: Folders) -> Folders:
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
            if isinstance(item, Command) and _leaves(item):
                next_good = next_bad = ()
            good, bad = (next_good, either(bad, next_bad)) if operator == "&&" else (either(good, next_good), next_bad)
        scope.certain = certain
        if chain.operators:
            scope.known = first
        if chain.background:
            scope.known = before
            return folders
        return either(good, bad) or folders

    def _pipeline(self, pipeline: Pipeline, scope: Scope, folders: Folders) -> None:
        given: str | Listing | None = None
        for index, item in enumerate(pipeline.items):
            part = scope.aside()
            if index:
                part.piped, part.given = True, given
            self._visit(item, part, folders)
            given = printed(item) or listed(item)

    def _block(self, block: Block, scope: Scope, folders: Folders) -> Folders:
        for token in block.words:
            self._runs(token.runs, scope, folders)
            self._take(token, scope)
        targets = self._redirects(block.redirects, scope, folders)
        if targets:
            self._add(Simple((), redirects=targets), scope, folders)
        inner = scope
        if block.redirects or block.kind not in ("group", "time"):
            inner = scope.aside()
            inner.known = scope.known if block.kind == "group" else inner.known
        if block.kind in ("coproc", "sink"):
            inner.piped, inner.given = True, None
        feed(inner, block.redirects)
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
            results = either(results, after)
            if block.kind == "branch":
                after = results
        return folders if block.kind in ("subshell", "coproc", "sink") else results or folders

    def _loop(self, block: Block, scope: Scope, folders: Folders) -> Folders:
        start = len(self.found)
        after = folders
        if block.words and block.name and self._once(block.name):
            each = tuple(word for token in block.words for word in self._words(token, scope))
            if len(each) <= MOST_LEARNT and all(word.text is not None for word in each):
                self._trust(block.name, each, scope)
        for body in block.bodies:
            after = self._visit(body, scope, after)[0]
            scope = scope.aside()
        if set(after) <= set(folders):
            return folders
        del self.found[start:]
        for body in block.bodies:
            self._visit(body, scope.aside(), (None,))
        return (None,)

    def _function(self, block: Block, scope: Scope, folders: Folders) -> Folders:
        start, moved = len(self.found), self.moved
        self.moved = False
        scope.known = {}
        scope.piped, scope.given = True, None
        for body in block.bodies:
            self._visit(body, scope, folders)
        self.moved_in_function = self.moved_in_function or self.moved
        self.moved = moved or self.moved
        self.functions.append((start, len(self.found)))
        if block.name in ("cd", "pushd", "popd", "exit", "return", "exec", "command", "builtin", "eval"):
            self.trouble = self.trouble or f"a function takes the place of {block.name!r}"
        return folders

    def _take(self, token: Token, scope: Scope) -> None:
        """Note the variables whose unknown value is taken over here."""
        if "$" not in token.raw and not any(part.kind == "variable" for part in token.parts):
            return
        known = scope.known if self.knows else {}
        if value_of(token, known) is None:
            parts = (part for part in (*token.parts, *token.behind) if part.kind not in ("text", "number"))
            self.taken.update(part.text for part in parts if part.text and part.text not in known)

    def _runs(self, runs: Many[object], scope: Scope, folders: Folders) -> None:
        for run in runs:
            part = scope.aside()
            part.assignments = part.redirects = ()
            self._visit(run, part, folders)

    # -- simple commands

    def _command(self, command: Command, scope: Scope, folders: Folders) -> tuple[Folders, Folders]:
        words: list[Word] = []
        for token in command.words:
            self._runs(token.runs, scope, folders)
            words.extend(self._words(token, scope))
        if self.homeless:
            words = [Word(None, word.raw) if word.text and word.text.startswith("~") else word for word in words]
        assigned = tuple((found.name, self._assigned(found, scope, folders)) for found in command.assignments)
        redirects = self._redirects(command.redirects, scope, folders)
        self._running(assigned)
        simple = Simple(
            tuple(words),
            (*scope.assignments, *assigned),
            (*scope.redirects, *redirects),
            scope.wrappers,
            text=command.source,
        )
        if not words:
            self._learn(command, assigned, scope)
            self._add(simple, scope, folders)
            return folders, folders
        part = scope.same()
        feed(part, command.redirects)
        if words[0].text == "exec" and any(redirect.kind != "write" for redirect in command.redirects):
            self.fed = True
        count = len(self.found)
        try:
            return self._simple(simple, part, folders)
        except Unreadable as error:
            self.trouble = self.trouble or str(error)
            if len(self.found) == count:
                self._add(simple, part, folders)
            return (None,), (None,)

    def _words(self, token: Token, scope: Scope) -> list[Word]:
        words = words_of(token, scope.known if self.knows else {})
        if len(token.runs) == 1 and len(token.parts) == 1 and not token.parts[0].quoted and words[0].text is None:
            return [replace(words[0], among=listed(token.runs[0]))]
        return words

    def _assigned(self, found: Assignment, scope: Scope, folders: Folders) -> Word:
        for token in found.items or (found.value,):
            self._runs(token.runs, scope, folders)
            self._take(token, scope)
        if found.items is not None or found.append:
            return Word(None, found.value.raw)
        known = scope.known if self.knows else {}
        text = value_of(found.value, known)
        return Word(None if text and text.startswith("~") and self.homeless else text, found.value.raw)

    def _redirects(self, redirects: Many[Redirection], scope: Scope, folders: Folders) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        for redirect in redirects:
            self._runs(redirect.target.runs, scope, folders)
            if redirect.body is not None:
                self._take(redirect.body, scope)
                if redirect.body is not redirect.target:
                    self._runs(redirect.body.runs, scope, folders)
            if redirect.kind in ("read", "write"):
                words = words_of(redirect.target, scope.known if self.knows else {})
                target = words[0] if len(words) == 1 else Word(None, redirect.target.raw)
                found.append(Redirect("read" if redirect.kind == "read" else "write", target))
        return tuple(found)

    def _running(self, assigned: Many[tuple[str, Word]]) -> None:
        for name, _ in assigned:
            if name in RUNNING or name.startswith("BASH_FUNC"):
                self.trouble = self.trouble or f"the shell may run what is in {name}"

    def _learn(self, command: Command, assigned: Many[tuple[str, Word]], scope: Scope) -> None:
        """Remember a variable when nothing else in the whole command can change it."""
        if not (scope.certain and self.knows):
            return
        for found, (name, word) in zip(command.assignments, assigned, strict=True):
            if len(self.learnt) > MOST_LEARNT:
                return
            self.learnt.add(name)
            if word.text and not found.indexed and self._once(name):
                self._trust(name, word.text, scope)

    def _once(self, name: str) -> bool:
        """Whether the name of a variable stands once in the whole command, but for its uses and words that hold it."""
        if not self.knows or name in self.findings.counted or not _FREE_NAME.fullmatch(name):
            return False
        stands = re.finditer(rf"(?<![\w$./-])(?<!\$\{{){name}(?![\w./-])|\$\{{{name}:?=", self.source)
        return len(list(islice(stands, 2))) == 1

    def _simple(self, simple: Simple, scope: Scope, folders: Folders) -> tuple[Folders, Folders]:
        words, name = simple.argv, simple.argv[0].text
        if simple.argv[0].glob:
            self.trouble = self.trouble or "the name of a program is a pattern"
        if name in ASSIGNING and scope.known:
            raise Unreadable(UNCERTAIN)
        if name == "read" and isinstance(scope.given, Listing):
            self._read(words, scope.given, scope)
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
        inner = checked(words, self.findings)
        if inner is not None:
            self._add(simple, scope, folders)
            after = folders
            for one in inner:
                after = self._inner(one, simple, scope, folders)
            return after, either(folders, after)
        given = None if self.fed else scope.given if scope.piped else ""
        run = opened(words, given)
        if run is None:
            self._add(simple, scope, folders)
            return folders, folders
        if run.itself or not run.inner:
            self._add(replace(simple, argv=run.words) if run.words else simple, scope, folders)
        for one in run.inner:
            self._inner(one, simple, scope, folders)
        return folders, folders

    def _read(self, words: Many[Word], given: Listing, scope: Scope) -> None:
        """Each line that is read then is a file of the list."""
        texts = [word.text for word in words[1:]]
        if len(texts) > 1 and texts[0] == "-r" and (texts[1:-1] == ["-d", ""]) == given.ended:
            name = texts[-1] or ""
            if (given.ended or len(texts) == 2) and self._once(name):
                self._trust(name, given, scope, read=True)

    def _trap(self, simple: Simple, scope: Scope) -> None:
        """What a trap runs, runs who knows when."""
        self._add(simple, scope, ("",) if not self.moved else (None,))
        start = len(self.found)
        for one in checked(simple.argv, self.findings) or ():
            self._inner(one, simple, scope, ("",))
        self.functions.append((start, len(self.found)))

    def _inner(self, inner: Inner, simple: Simple, scope: Scope, folders: Folders) -> Folders:
        if scope.depth >= DEEPEST_CODE:
            raise Unreadable("commands in commands are nested too deeply")
        if inner.folder is None:
            folders = (None,)
        elif inner.folder:
            folders = tuple(moved(folder, (_CD, Word(inner.folder, "")), self.source) for folder in folders)
        self._running(inner.assignments)
        part = scope.aside()
        part.depth += 1
        part.wrappers = (*simple.wrappers, inner.wrapper)
        part.assignments = (*simple.assignments, *inner.assignments)
        part.redirects = (*simple.redirects, *inner.redirects)
        if inner.posix is not None:
            part.posix = inner.posix
        if inner.words:
            whole = Simple(inner.words, part.assignments, part.redirects, part.wrappers, text=simple.text)
            self._simple(whole, part, folders)
            return folders
        if inner.reads_input:
            self._input(inner, part, folders)
            return folders
        text = inner.code.text if inner.code else None
        if text is None or (inner.code and inner.code.glob):
            raise Unreadable(f"what {inner.wrapper!r} runs is known only when it runs")
        return self._code(text, part, folders)

    def _code(self, text: str, scope: Scope, folders: Folders) -> Folders:
        if "\0" in text or "\r" in text:
            raise Unreadable("a text to run holds unusual characters")
        scope.known = {}
        tree = Parser(text, self.findings, scope.depth, scope.posix).whole()
        return self._visit(tree, scope, folders)[0]

    def _input(self, inner: Inner, scope: Scope, folders: Folders) -> None:
        """A shell that reads its commands from its input."""
        if not (scope.piped or self.fed):
            return
        text = None if self.fed else scope.given
        if not isinstance(text, str):
            raise Unreadable(f"what {inner.wrapper!r} reads and runs is known only when it runs")
        scope.given = None
        scope.redirects = ()
        for line in text.splitlines():
            self._code(line, scope, folders)

    def _add(self, simple: Simple, scope: Scope, folders: Folders) -> None:
        if len(self.found) > MOST_COMMANDS:
            raise Unreadable("it runs too many commands")
        comes = incoming(scope, self.fed)
        if comes or (scope.wrappers and not simple.wrappers):
            simple = replace(simple, wrappers=simple.wrappers or scope.wrappers, incoming=comes)
        if folders == ("",):
            self.found.append(simple)
        else:
            self.found.extend(replace(simple, folder=folder) for folder in folders)


def _leaves(command: Command) -> bool:
    return bool(command.words) and command.words[0].bare() in _LEAVING
