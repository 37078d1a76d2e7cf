"""Simple commands as written: assignments, words, redirections, here-documents, ends of lines and comments.

Compounds and lists stand in ``parser``, words in ``words``.
"""

from __future__ import annotations

from typing import Literal

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import Token, TokenFindings, UnreadableCommand
from ba_tui.permissions.shell.tree import Assignment, Node, Redirection, SimpleCommand
from ba_tui.permissions.shell.words import BLANK, Lexer

_REDIRECT = regex(r"([0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())|()(&>>|&>(?!\())")
_REDIRECTING = frozenset("0123456789{<>&")
_ASSIGNED = regex(r"([A-Za-z_][A-Za-z0-9_]*)(\[|\+?=)")
_NUMBER = regex(r"[0-9]+-?|-")
_JOINED = regex(r"(?<!\\)(?:\\\\)*\\$")
_INDEX = regex(r"\[[\w .,:/@-]*\]=")
_OPENING = regex(r"[ \t]*\(")
_EQUALS = regex(r"\+?=")
DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly", "alias"})


class SimpleReader(Lexer):
    """Reads one simple command, and what stands between commands."""

    def __init__(self, text: str, findings: TokenFindings, depth: int = 0, posix: bool = False) -> None:
        super().__init__(text, findings, depth, posix)
        self.waiting: list[tuple[Redirection, str, bool, bool]] = []
        self.nested: int = 0

    def function(self, name: str | None) -> Node:
        """The function whose name and opening parenthesis were read."""
        raise NotImplementedError

    # -- blanks, newlines, here-documents

    def blank(self) -> None:
        char = self.text[self.at : self.at + 1]
        if char in BLANK:
            self.spaces()
            char = self.text[self.at : self.at + 1]
        if char == "#":
            end = self.text.find("\n", self.at)
            self.at = len(self.text) if end < 0 else end

    def lines(self) -> None:
        """Skip blanks, comments and ends of lines."""
        self.blank()
        while self.text.startswith("\n", self.at):
            self.at += 1
            self.bodies()
            self.blank()

    def bodies(self) -> None:
        waiting, self.waiting = self.waiting, []
        for redirect, delimiter, quoted, strip in waiting:
            body = self._body(delimiter, quoted, strip)
            if quoted:
                redirect.body = Token(self.at)
                redirect.body.add(body, True)
            else:
                redirect.body = type(self)(body, self.findings, self.depth + self.nested + 1, self.posix).here()

    def _body(self, delimiter: str, quoted: bool, strip: bool) -> str:
        lines: list[str] = []
        logical, fresh = "", True
        while True:
            if self.at >= len(self.text):
                raise UnreadableCommand("a here-document is not closed")
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if strip and fresh:
                line = line.lstrip("\t")
            joined = not quoted and _JOINED.search(line)
            logical = (logical + line[:-1]) if joined else logical + line
            if not joined and logical == delimiter:
                return "".join(lines)
            lines.append(line + "\n")
            fresh = not joined
            if fresh:
                logical = ""

    def only_bash(self, what: str) -> None:
        if self.posix:
            raise UnreadableCommand(f"shells disagree about {what!r}")

    def words(self, lines: bool = False) -> list[Token]:
        """All words from here; ``lines``: over ends of lines too."""
        found: list[Token] = []
        while True:
            if lines:
                self.lines()
            else:
                self.blank()
            start = self.at
            token = self.word()
            if self.at == start:
                return found
            found.append(token)

    def needed(self) -> Token:
        start = self.at
        token = self.word()
        if self.at == start:
            raise UnreadableCommand("a word is missing")
        return token

    def redirect(self, found: list[Redirection]) -> bool:
        # Most words can't be one, and the pattern is slow to find that out.
        if self.text[self.at : self.at + 1] not in _REDIRECTING or not (match := _REDIRECT.match(self.text, self.at)):
            return False
        self.at = match.end()
        descriptor, operator = match.group(1) or "", match.group(2) or match.group(4)
        if operator in ("&>", "&>>", "<<<", ">&", "<&") and (operator[0] == "&" or operator == "<<<"):
            self.only_bash(operator)
        if descriptor.startswith("{"):
            self.only_bash("{name}>")
            self.findings.wild.add(descriptor[1:-1])
            self.findings.bound.add(descriptor[1:-1])
        self.spaces()
        start = self.at
        target = self.needed()
        if operator in ("<<", "<<-"):
            found.append(self._heredoc(target, operator == "<<-", self.text[start : self.at]))
        elif operator == "<<<":
            found.append(Redirection("here", target, descriptor, target))
        else:
            descriptor = descriptor or ("0" if operator == "<>" else "")
            found.append(Redirection(self._kind(operator, target), target, descriptor))
        return True

    def _kind(self, operator: str, target: Token) -> Literal["read", "write", "copy"]:
        literal = target.literal()
        if operator == "<&" or (operator == ">&" and literal is not None and _NUMBER.fullmatch(literal)):
            return "copy"
        if self.text.startswith(("<(", ">("), target.start) and len(target.parts) == 1:
            return "copy"
        return "read" if operator == "<" else "write"

    def _heredoc(self, target: Token, strip: bool, raw: str) -> Redirection:
        delimiter = target.literal()
        if delimiter is None or "$" in raw or "\n" in raw:
            raise UnreadableCommand("the end of a here-document is not understood")
        redirect = Redirection("here", target)
        self.waiting.append((redirect, delimiter, raw != delimiter, strip))
        return redirect

    def simple(self) -> Node:
        command = SimpleCommand(self.at)
        while True:
            command.end = self.at
            self.spaces()
            if self.redirect(command.redirects):
                continue
            if self.text.startswith("#", self.at):
                break
            if self._assignment(command):
                continue
            start = self.at
            token = self.word()
            if self.at == start:
                break
            if not command.words:
                self.findings.programs.add(token.raw)
            command.words.append(token)
            if len(command.words) == 1 and (opening := _OPENING.match(self.text, self.at)):
                if command.assignments or command.redirects:
                    raise UnreadableCommand("a parenthesis follows a word")
                self.at = opening.end()
                return self.function(token.literal())
        if not (command.words or command.assignments or command.redirects):
            raise UnreadableCommand("a command is missing")
        command.source = self.text[command.start : command.end].strip()
        return command

    def _assignment(self, command: SimpleCommand) -> bool:
        """Read ``name=value`` where the shell takes it for one: before the command, or a list after ``declare``."""
        if command.words and command.words[0].bare() not in DECLARING:
            return False
        match = _ASSIGNED.match(self.text, self.at)
        if match is None:
            return False
        if command.words and (match.group(2) == "[" or not self.text.startswith("(", match.end())):
            return False
        place, self.at = self.at, match.end()
        indexed = match.group(2) == "["
        append = match.group(2) == "+="
        index = Token(self.at)
        if indexed:
            self.sum(index, "]")
            more = _EQUALS.match(self.text, self.at)
            if more is None:
                self.at = place
                return False
            self.at = more.end()
            append = len(more.group()) > 1
        self._assigned(command, Assignment(match.group(1), Token(self.at), append=append, indexed=indexed))
        command.assignments[-1].value.runs.extend(index.runs)
        return True

    def _assigned(self, command: SimpleCommand, found: Assignment) -> None:
        if self.text.startswith("(", self.at):
            self.only_bash("a list of values")
            self.at += 1
            found.items = self.words(lines=True)
            if not self.text.startswith(")", self.at):
                raise UnreadableCommand("a list of values is not closed")
            self.at += 1
            for item in found.items:
                if self.text.startswith("[", item.start) and not _INDEX.match(self.text, item.start):
                    raise UnreadableCommand("an index in a list of values is not understood")
        else:
            found.value = self.word()
        found.value.end = self.at
        if found.items is not None or found.indexed:
            self.findings.lists.add(found.name)
        self.findings.sources.setdefault(found.name, []).extend(found.items or [found.value])
        command.assignments.append(found)
