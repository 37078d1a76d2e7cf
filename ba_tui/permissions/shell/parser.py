"""Commands of the shell read exactly as bash reads them: lists, pipelines, compounds, redirections, here-documents.

Words stand in ``words``; which commands come of a tree in ``walk.expansion``. Nothing here judges.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.commands import SimpleReader
from ba_tui.permissions.shell.tokens import Token, UnreadableCommand
from ba_tui.permissions.shell.tree import Chain, CommandList, Compound, Node, Pipeline
from ba_tui.permissions.shell.words import DEEPEST

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
    """Reads a whole text as commands."""

    def whole(self) -> CommandList:
        """All commands of the text."""
        found = self._sequence()
        if self.at < len(self.text):
            raise UnreadableCommand(f"it is not understood from {self.text[self.at : self.at + 20]!r} on")
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
        """Chains up to what closes the list, which stays."""
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
            raise UnreadableCommand(f"{keyword!r} stands where a command belongs")
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
            raise UnreadableCommand("the variable of a loop is not understood")
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
                raise UnreadableCommand("a pattern of 'case' is not understood")
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
        """``[[ … ]]`` after its opening."""
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
                    raise UnreadableCommand("a comparison in [[ is not understood")
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
            raise UnreadableCommand("a function is not understood")
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
