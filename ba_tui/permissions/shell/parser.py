"""Parses shell commands exactly as bash does: simple commands, lists, pipelines, compounds, redirections.

``words`` parses words; ``walker`` finds the commands that a tree runs. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tree import (
    Chain,
    CommandList,
    Compound,
    Node,
    Pipeline,
    Redirection,
    SimpleCommand,
    Token,
    TokenFindings,
    UnreadableCommand,
    VariableAssignment,
)
from ba_tui.permissions.shell.words import BLANK, DEEPEST, Lexer

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
    """Parses one simple command, and the text between commands."""

    def __init__(self, text: str, findings: TokenFindings, depth: int = 0, posix: bool = False) -> None:
        super().__init__(text, findings, depth, posix)
        self.waiting: list[tuple[Redirection, str, bool, bool]] = []
        self.nested: int = 0

    def function(self, name: str | None) -> Node:
        """Parse a function whose name and opening parenthesis were consumed."""
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
        """Skip blanks, comments and line ends."""
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
        """Parse all words from here; ``lines``: also across line ends."""
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
        # Most words are no redirection, and the pattern is slow to reject them.
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
            raise UnreadableCommand("the delimiter of a here-document can't be parsed")
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
        """Parse ``name=value`` where the shell treats it as one: before the command, or a list after ``declare``."""
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
        self._assigned(command, VariableAssignment(match.group(1), Token(self.at), append=append, indexed=indexed))
        command.assignments[-1].value.runs.extend(index.runs)
        return True

    def _assigned(self, command: SimpleCommand, found: VariableAssignment) -> None:
        if self.text.startswith("(", self.at):
            self.only_bash("a list of values")
            self.at += 1
            found.items = self.words(lines=True)
            if not self.text.startswith(")", self.at):
                raise UnreadableCommand("a list of values is not closed")
            self.at += 1
            for item in found.items:
                if self.text.startswith("[", item.start) and not _INDEX.match(self.text, item.start):
                    raise UnreadableCommand("an index in a list of values can't be parsed")
        else:
            found.value = self.word()
        found.value.end = self.at
        if found.items is not None or found.indexed:
            self.findings.lists.add(found.name)
        self.findings.sources.setdefault(found.name, []).extend(found.items or [found.value])
        command.assignments.append(found)


_MATCHING = frozenset({"=", "==", "!=", "=~"})
_COPROCESS = regex(r"[A-Za-z_]\w*[ \t]+(?=\(|(?:\{|\[\[|if|while|until|for|select|case)[ \t\n])", re.ASCII)
ARITHMETIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_KEYWORD = regex(r"[a-z]+(?=[ \t\n;&|()<>]|$)|[{}!](?=[ \t\n;&|()<>]|$)|\[\[(?=[ \t\n])")
_SPLIT = regex(r"(?:[a-z{}!\[]|\\\n){1,40}")
_TIME = regex(r"(?:-p|--)(?=[ \t\n])")
_DASHES = regex(r"--(?=[ \t\n])")
_TEST_END = regex(r"\]\](?=[ \t\n;&|()<>]|$)")
_TEST_OPERATOR = regex(r"&&|\|\||[()]|[<>](?!\()")
_CASE_END = regex(r";;&|;;|;&")
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_KEYWORDS = frozenset({"if", "while", "until", "for", "select", "case", "function", "{", "[[", "!", "time", "coproc"})
_NOT_POSIX = frozenset({"[[", "select", "function", "time", "coproc"})


class Parser(SimpleReader):
    """Parses a whole text as commands."""

    def whole(self) -> CommandList:
        """Parse all commands of the text."""
        found = self._sequence()
        if self.at < len(self.text):
            raise UnreadableCommand(f"it can't be parsed from {self.text[self.at : self.at + 20]!r} on")
        self.bodies()
        return found

    def program(self, closer: str) -> CommandList:
        self._deeper()
        waiting, self.waiting = self.waiting, []
        found = self._sequence()
        if self.waiting or not self.text.startswith(closer, self.at):
            raise UnreadableCommand("a substitution is not closed")
        self.at += len(closer)
        self.waiting = waiting
        self.nested -= 1
        return found

    def inner(self, text: str) -> CommandList:
        return Parser(text, self.findings, self.depth + self.nested + 1, self.posix).whole()

    def _deeper(self) -> None:
        self.nested += 1
        if self.depth + self.nested > DEEPEST:
            raise UnreadableCommand("it is nested too deeply")

    # -- lists

    def _sequence(self) -> CommandList:
        """Parse chains up to the token that closes the list, without consuming it."""
        found = CommandList()
        self.lines()
        while self.at < len(self.text) and not self._closes():
            found.items.append(self._chain())
            self.blank()
            char = self.text[self.at : self.at + 1]
            if char == "&" or (char == ";" and self.text[self.at + 1 : self.at + 2] not in (";", "&")):
                found.items[-1].background = char == "&"
                self.at += 1
            elif char != "\n":
                break
            self.lines()
        return found

    def _closes(self) -> bool:
        if self.text[self.at] in ");":
            return True
        return self._keyword() in _CLOSERS

    def _keyword(self) -> str:
        match = _KEYWORD.match(self.text, self.at)
        if match is None and "\\\n" in self.text[self.at : self.at + 12]:
            joined = _SPLIT.match(self.text, self.at)
            if joined and joined.group().replace("\\\n", "") in _KEYWORDS | _CLOSERS:
                raise UnreadableCommand("a joined line splits a keyword")
        return match.group() if match else ""

    def _expect(self, keyword: str) -> None:
        self.lines()
        if self._keyword() != keyword:
            raise UnreadableCommand(f"{keyword!r} is missing")
        self.at += len(keyword)

    def _body_of(self, *closers: str) -> CommandList:
        self._deeper()
        found = self._sequence()
        self.nested -= 1
        if not found.items:
            raise UnreadableCommand("a list is empty")
        if closers and self._keyword() not in closers:
            raise UnreadableCommand(f"{closers[0]!r} is missing")
        return found

    def _chain(self) -> Chain:
        items, operators = [self._pipeline()], list[str]()
        while True:
            self.blank()
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                return Chain(items, operators)
            self.at += 2
            self.lines()
            operators.append(operator)
            items.append(self._pipeline())

    def _pipeline(self) -> Node:
        keyword = self._keyword()
        if keyword == "!":
            self.at += 1
            self.blank()
            return self._pipeline()
        if keyword == "time":
            return self._timed()
        items = [self._command()]
        while True:
            self.blank()
            if self.text.startswith("||", self.at) or not self.text.startswith("|", self.at):
                return items[0] if len(items) == 1 else Pipeline(items)
            self.at += 1
            if self.text.startswith("&", self.at):
                self.only_bash("|&")
                self.at += 1
            self.lines()
            items.append(self._command())

    def _timed(self) -> Node:
        self.at += 4
        self.only_bash("time")
        self.spaces()
        option = _TIME.match(self.text, self.at)
        while option:
            self.at = option.end()
            self.spaces()
            option = _DASHES.match(self.text, self.at)
        if self.text.startswith("-", self.at):
            raise UnreadableCommand("'time' with options is read in more than one way")
        if self.at >= len(self.text) or self.text[self.at] in "\n;&|)":
            return Compound("time", name="time")
        return Compound("time", [self._pipeline()], name="time")

    # -- commands

    def _command(self) -> Node:
        if self.text.startswith("((", self.at):
            return self._with_redirects(self._arithmetic())
        if self.text.startswith("(", self.at):
            self.at += 1
            return self._with_redirects(Compound("subshell", [self.program(")")]))
        keyword = self._keyword()
        if keyword in _CLOSERS:
            raise UnreadableCommand(f"{keyword!r} is in the place of a command")
        if keyword in _KEYWORDS:
            if keyword in _NOT_POSIX:
                self.only_bash(keyword)
            return self._compound(keyword)
        return self.simple()

    def _arithmetic(self) -> Compound:
        self.only_bash("((")
        token = Token(self.at)
        self.at += 2
        self.sum(token, "))")
        return Compound("group", words=[token])

    def _compound(self, keyword: str) -> Node:
        self.at += len(keyword)
        if keyword == "{":
            block = Compound("group", [self._body_of("}")])
            self.at += 1
        elif keyword in ("while", "until"):
            condition = self._body_of("do")
            block = Compound("loop", [condition, self._done()])
        elif keyword == "if":
            block = self._if()
        elif keyword in ("for", "select"):
            block = self._for()
        elif keyword == "case":
            block = self._case()
        elif keyword == "[[":
            block = self._test()
        elif keyword == "function":
            return self._function_word()
        else:
            return self._coproc()
        return self._with_redirects(block)

    def _done(self) -> CommandList:
        self._expect("do")
        body = self._body_of("done")
        self.at += 4
        return body

    def _if(self) -> Compound:
        block = Compound("branch")
        while True:
            block.bodies.append(self._body_of("then"))
            self.at += 4
            block.bodies.append(self._body_of("elif", "else", "fi"))
            closer = self._keyword()
            self.at += len(closer)
            if closer == "else":
                block.bodies.append(self._body_of("fi"))
                self.at += 2
            if closer != "elif":
                return block

    def _for(self) -> Compound:
        self.spaces()
        if self.text.startswith("((", self.at):
            block = self._arithmetic()
            block.kind = "loop"
            self.blank()
            if self.text.startswith(";", self.at):
                self.at += 1
            block.bodies.append(self._done())
            return block
        name = self.word().bare()
        if name is None or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise UnreadableCommand("the variable of a loop can't be parsed")
        words: list[Token] = []
        self.lines()
        if self._keyword() == "in":
            self.at += 2
            words = self.words()
        else:
            self.findings.wild.add(name)
        self.findings.bound.add(name)
        if self.text.startswith(";", self.at):
            self.at += 1
        self.findings.sources.setdefault(name, []).extend(words)
        return Compound("loop", [self._done()], words, name=name)

    def _case(self) -> Compound:
        self.blank()
        block = Compound("branch", words=[self.needed()])
        self._expect("in")
        while True:
            self.lines()
            if self._keyword() == "esac":
                self.at += 4
                return block
            if self.text.startswith("(", self.at):
                self.at += 1
            while True:
                self.blank()
                block.words.append(self.needed())
                self.blank()
                if not self.text.startswith("|", self.at):
                    break
                self.at += 1
            if not self.text.startswith(")", self.at):
                raise UnreadableCommand("a pattern of 'case' can't be parsed")
            self.at += 1
            self._deeper()
            block.bodies.append(self._sequence())
            self.nested -= 1
            end = _CASE_END.match(self.text, self.at)
            if end:
                self.at = end.end()
            elif self._keyword() != "esac":
                raise UnreadableCommand("an item of 'case' is not closed")

    def _test(self) -> Compound:
        """Parse ``[[ … ]]`` after its opening."""
        tokens: list[Token] = []
        while True:
            self.lines()
            if _TEST_END.match(self.text, self.at):
                self.at += 2
                break
            operator = _TEST_OPERATOR.match(self.text, self.at)
            start = self.at
            if operator:
                self.at = operator.end()
                token = Token(start, self.at)
                token.add(operator.group(), False)
            else:
                token = self.word(extended=bool(tokens) and tokens[-1].bare() in _MATCHING)
            if self.at == start:
                raise UnreadableCommand("[[ is not closed")
            tokens.append(token)
        for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
            name = token.bare()
            if name in ARITHMETIC or name in ("-v", "-R"):
                if after is None or (before is None and name in ARITHMETIC):
                    raise UnreadableCommand("a comparison in [[ can't be parsed")
                for operand in (before, after) if name in ARITHMETIC and before else (after,):
                    self.note(operand)
                    self.findings.counted_runs.extend(operand.runs)
        return Compound("group", words=tokens)

    def _function_word(self) -> Node:
        self.spaces()
        name = self.needed().literal()
        self.spaces()
        if self.text.startswith("(", self.at):
            self.at += 1
            return self.function(name)
        return self._function_body(name)

    def function(self, name: str | None) -> Node:
        self.spaces()
        if not self.text.startswith(")", self.at):
            raise UnreadableCommand("a parenthesis follows a word")
        self.at += 1
        return self._function_body(name)

    def _function_body(self, name: str | None) -> Node:
        self.lines()
        body = self._command()
        if not isinstance(body, Compound) or not name:
            raise UnreadableCommand("a function can't be parsed")
        return Compound("function", [body], name=name)

    def _coproc(self) -> Node:
        self.spaces()
        named = _COPROCESS.match(self.text, self.at)
        if named:
            self.findings.lists.add(named.group().strip())
            self.at = named.end()
        return Compound("coproc", [self._command()], name="coproc")

    def _with_redirects(self, block: Compound) -> Compound:
        self.spaces()
        while self.redirect(block.redirects):
            self.spaces()
        return block


def piped_words(script: str) -> list[list[Sequence[str]]]:
    """Return, for each pipe outside of subshells, the first two words of each of its parts; none if ``script`` can't be
    parsed. Words that are unknown before it runs are empty."""
    try:
        pipes = list(_pipes(Parser(script, TokenFindings()).whole()))
    except (UnreadableCommand, RecursionError):
        return []
    parts = ([part.words[:2] if isinstance(part, SimpleCommand) else () for part in pipe.items] for pipe in pipes)
    return [[[word.literal() or "" for word in words] for words in pipe] for pipe in parts]


def _pipes(node: Node) -> Iterator[Pipeline]:
    match node:
        case Pipeline():
            yield node
        case Chain(items=items) | CommandList(items=items):
            for item in items:
                yield from _pipes(item)
        case Compound(kind="group" | "loop" | "branch", bodies=bodies):
            for body in bodies:
                yield from _pipes(body)
        case _:
            return
