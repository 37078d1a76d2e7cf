"""The variables of a command whose value is certain wherever they stand, and those whose unknown value is used.

``walker`` says where variables are set and used; nothing else in the command may set them then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import Token, TokenFindings
from ba_tui.permissions.shell.tree import SimpleCommand
from ba_tui.permissions.shell.walk.builtins import ASSIGNING
from ba_tui.permissions.shell.walk.scope import ShellScope
from ba_tui.permissions.shell.walk.values import KnownListing, ShellWord
from ba_tui.permissions.shell.walk.word_values import Several, Values, value_of

MOST_LEARNT = 50
UNCERTAIN = "a variable may be changed in a way that is not certain"

_ASSIGNERS = regex(
    r"\b(?:"
    + "|".join(re.escape(name) for name in ASSIGNING if name != ".")
    + r"|IFS(?!=['\" ]{0,3}\s+read\b))\b|(?:^|[\n;&|(){}!`'\"]|\b(?:then|do|else|time)\b)[ \t]*\.\s|\\\n"
)
"""What may set variables in a way that does not show: then no value is certain."""
_FREE_NAME = regex(r"(?!BASH|EPOCH|COMP|DIRSTACK)(?:[a-z_][A-Za-z0-9_]+|[a-z]|[A-Z][A-Z0-9_]*_[A-Z0-9_]*|[A-Z])")


class Certain:
    """What is known of the variables of one command, which reads ``source``. ``taken``: those whose unknown value goes
    into something else."""

    def __init__(self, source: str, findings: TokenFindings) -> None:
        self.source = source
        self.findings = findings
        self.knows = not _ASSIGNERS.search(source)
        self.learnt: set[str] = set()
        self.trusted: dict[str, tuple[int, int]] = {}
        """Variables whose value is held for certain; how often builtins and assignments set them."""
        self.taken: set[str] = set()

    def known(self, scope: ShellScope) -> Values:
        """The variables that are certain in ``scope``."""
        return scope.known if self.knows else {}

    def loop(self, name: str, words: Sequence[ShellWord], scope: ShellScope) -> None:
        """A loop sets ``name`` to each of the words, one after the other."""
        if not self._once(name):
            return
        if len(words) == 1 and isinstance(words[0].among, KnownListing):
            self._trust(name, words[0].among, scope)
        elif len(words) <= MOST_LEARNT and all(word.text is not None for word in words):
            self._trust(name, tuple(words), scope)

    def _trust(self, name: str, value: str | Several, scope: ShellScope, *, read: bool = False) -> None:
        """Take a variable for what it is set to here, by ``read`` or not; ``changed`` looks whether that holds."""
        scope.known[name] = value
        self.trusted[name] = (int(read), len(self.findings.sources.get(name, ())))

    def changed(self) -> bool:
        """Whether a variable whose value was held for certain is set in code within the command, or by a builtin."""
        found = self.findings
        return any(
            (found.changed.count(name), len(found.sources.get(name, ()))) != times or name in found.counted
            for name, times in self.trusted.items()
        )

    def take(self, token: Token, scope: ShellScope) -> None:
        """Note the variables whose unknown value is taken over here."""
        if "$" not in token.raw and not any(part.kind == "variable" for part in token.parts):
            return
        known = self.known(scope)
        if value_of(token, known) is None:
            parts = (part for part in (*token.parts, *token.behind) if part.kind not in ("text", "number"))
            self.taken.update(part.text for part in parts if part.text and part.text not in known)

    def learn(self, command: SimpleCommand, assigned: Sequence[tuple[str, ShellWord]], scope: ShellScope) -> None:
        """Remember a variable when nothing else in the whole command can change it."""
        if not (scope.certain and self.knows):
            return
        for found, (name, word) in zip(command.assignments, assigned, strict=True):
            if len(self.learnt) > MOST_LEARNT:
                return
            self.learnt.add(name)
            if isinstance(word.among, KnownListing) and not found.indexed and self._once(name):
                self._trust(name, replace(word.among, held=True), scope)
            # A tilde stands for a folder there, and only there, wherever it is not quoted.
            if word.text and "~" not in word.raw and not found.indexed and self._once(name):
                self._trust(name, word.text, scope)

    def _once(self, name: str) -> bool:
        """Whether the name of a variable stands once in the whole command, but for its uses and words that hold it."""
        if not self.knows or name in self.findings.counted or not _FREE_NAME.fullmatch(name):
            return False
        stands = re.finditer(rf"(?<![\w$./-])(?<!\$\{{){name}(?![\w./-])|\$\{{{name}:?=", self.source)
        return len(list(islice(stands, 2))) == 1

    def read(self, words: Sequence[ShellWord], given: KnownListing, scope: ShellScope) -> None:
        """Each line that is read then is a file of the list."""
        texts = [word.text for word in words[1:]]
        if len(texts) > 1 and texts[0] == "-r" and (texts[1:-1] == ["-d", ""]) == given.ended:
            name = texts[-1] or ""
            if (given.ended or len(texts) == 2) and self._once(name):
                self._trust(name, given, scope, read=True)
