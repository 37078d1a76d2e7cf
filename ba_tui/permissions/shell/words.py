"""Parses words of a shell command exactly as bash does: quotes, expansions, substitutions, arithmetic.

``parser`` builds commands from words; ``word_values`` computes their values.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tree import Compound, Node, Token, TokenFindings, TokenPart, UnreadableCommand

ANSI = regex(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))|([^\\])", re.DOTALL
)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def ansi_character(match: re.Match[str]) -> str:
    """Return the character of one match of ``ANSI``, an escape in ``$'…'``."""
    two, four, eight, octal, control, letter, plain = match.groups()
    if plain is not None:
        return plain
    number = two or four or eight
    if number or octal:
        code = int(number, 16) if number else int(octal, 8) & 0xFF
        if not 0 < code <= 0x7F:
            # Other values depend on the locale.
            raise UnreadableCommand("an escape in $'' does not make a plain character")
        return chr(code)
    if control is not None:
        raise UnreadableCommand("a control character is written in $''")
    return _ANSI_LETTERS.get(letter, letter if letter in "\\'\"?" else "\\" + letter)


DEEPEST = 24

_PLAIN = regex(r"[^ \t\n|&;()<>$`\"'\\*?\[{]+")
_WHOLE = regex(_PLAIN.pattern + r"+(?=[ \t\n|&;()]|\Z)")
_QUOTED = regex(r"[^\"$`\\]+")
_HERE = regex(r"[^$`\\]+")
_BRACED = regex(r"[^}\"'$`\\<>]+")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_SUM = regex(r"[-+*/%<>=!~^&|?:,. \t\n]+|[0-9][0-9A-Za-z_@#]*|#")
_SIDE_BY_SIDE = regex(r"[ \t\n]+[\w$\"'`]")
_NOT_PLAIN = regex(r"[^\w\s.+*/%()-]")
_SPACES = regex(r"(?:[ \t]|\\\n)*")
BLANK = frozenset(" \t\\")
_TRANSFORMS = frozenset("QUuLEAaKk")


class Lexer:
    """Parses words from ``text``; commands inside substitutions are passed to ``program``."""

    def __init__(self, text: str, findings: TokenFindings, depth: int = 0, posix: bool = False) -> None:
        if depth > DEEPEST:
            raise UnreadableCommand("it is nested too deeply")
        self.text = text
        self.at: int = 0
        self.depth = depth
        self.posix = posix
        self.findings = findings

    def program(self, closer: str) -> Node:
        """Parse the commands from here to ``closer``, and consume it."""
        raise NotImplementedError

    def inner(self, text: str) -> Node:
        """Parse the commands of a separate text."""
        raise NotImplementedError

    def spaces(self) -> None:
        """Skip blanks and line continuations."""
        if self.text[self.at : self.at + 1] in BLANK and (match := _SPACES.match(self.text, self.at)):
            self.at = match.end()

    def word(self, extended: bool = False) -> Token:
        """Parse the word that begins here. ``extended``: a pattern or expression inside ``[[``, where parentheses
        belong."""
        token = Token(self.at)
        text, size = self.text, len(self.text)
        match = None if extended else _WHOLE.match(text, self.at)
        if match:
            self.at = token.end = match.end()
            token.raw = match.group()
            token.parts.append(TokenPart("text", token.raw, False))
            return token
        parens = 0
        while self.at < size:
            match = _PLAIN.match(text, self.at)
            if match:
                token.add(match.group(), False)
                self.at = match.end()
                continue
            char = text[self.at]
            if extended and (char in "()|" or (parens and char in " \t<>")) and not text.startswith("||", self.at):
                parens = self._parens(parens, char)
                if parens < 0:
                    break
                token.add(char, False)
                token.pattern = True
                self.at += 1
            elif char in " \t\n|&;()":
                break
            elif char in "<>":
                if not text.startswith("(", self.at + 1):
                    break
                self._process(token)
            else:
                self._special(token, char)
        if parens > 0:
            raise UnreadableCommand("a parenthesis is not closed")
        token.end = self.at
        token.raw = text[token.start : token.end]
        return token

    @staticmethod
    def _parens(parens: int, char: str) -> int:
        if char == "(":
            return parens + 1
        if char == ")":
            return parens - 1
        return parens if parens or char == "|" else -1

    def _special(self, token: Token, char: str) -> None:
        if char == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            if not following:
                raise UnreadableCommand("it ends with a backslash")
            if following != "\n":
                token.add(following, True)
            self.at += 2
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise UnreadableCommand("a quote is not closed")
            token.add(self.text[self.at + 1 : end], True)
            self.at = end + 1
        elif char == '"':
            self._double(token)
        elif char == "$":
            self._dollar(token, False)
        elif char == "`":
            self._backticks(token, False)
        else:
            token.pattern = token.pattern or char in "*?["
            token.braces = token.braces or char == "{"
            token.add(char, False)
            self.at += 1

    def _process(self, token: Token) -> None:
        if self.posix:
            raise UnreadableCommand("shells disagree about <( )")
        sink = self.text[self.at] == ">"
        self.at += 2
        run = self.program(")")
        token.runs.append(Compound("sink", [run]) if sink else run)
        token.parts.append(TokenPart("unknown", "", True))

    def _double(self, token: Token) -> None:
        """Parse text between double quotes, from the opening quote."""
        self.at += 1
        token.add("", True)
        while True:
            match = _QUOTED.match(self.text, self.at)
            if match:
                token.add(match.group(), True)
                self.at = match.end()
            char = self.text[self.at : self.at + 1]
            if not char:
                raise UnreadableCommand("a quote is not closed")
            if char == '"':
                self.at += 1
                return
            self._expand(token, char, '"$`\\\n')

    def here(self) -> Token:
        """Parse the whole text as the body of a here-document with an unquoted delimiter."""
        token = Token(0, len(self.text))
        while self.at < len(self.text):
            match = _HERE.match(self.text, self.at)
            if match:
                token.add(match.group(), True)
                self.at = match.end()
            else:
                self._expand(token, self.text[self.at], "$`\\\n")
        return token

    def _expand(self, token: Token, char: str, escapable: str) -> None:
        if char == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            if following and following in escapable:
                token.add("" if following == "\n" else following, True)
            else:
                token.add("\\" + following, True)
            self.at += 2
        elif char == "$":
            self._dollar(token, True)
        else:
            self._backticks(token, True)

    def _backticks(self, token: Token, quoted: bool) -> None:
        inside: list[str] = []
        at = self.at + 1
        while True:
            char = self.text[at : at + 1]
            if not char:
                raise UnreadableCommand("a backtick is not closed")
            if char == "`":
                break
            if char == "\\":
                following = self.text[at + 1 : at + 2]
                inside.append(
                    following if following in ("$", "`", "\\") or (quoted and following == '"') else char + following
                )
                at += 2
            else:
                inside.append(char)
                at += 1
        self.at = at + 1
        token.runs.append(self.inner("".join(inside)))
        token.parts.append(TokenPart("unknown", "", quoted))

    def _dollar(self, token: Token, quoted: bool) -> None:
        text, at = self.text, self.at + 1
        char = text[at : at + 1]
        if char == "(":
            self._substitution(token, quoted)
        elif char == "{":
            self._parameter(token, quoted)
        elif char == "[":
            raise UnreadableCommand("$[ ] is an old form of arithmetic")
        elif char == "\\" and text.startswith("\n", at + 1):
            raise UnreadableCommand("a joined line splits an expansion")
        elif char == "'" and not quoted:
            self._ansi(token)
        elif char == '"' and not quoted:
            self.at = at
            self._double(token)
        else:
            match = _NAME.match(text, at)
            if match or (char and char in "0123456789@*#?$!-"):
                name = match.group() if match else char
                self.at = at + len(name)
                token.parts.append(TokenPart("variable", name, quoted))
                if text.startswith("\\\n", self.at):
                    raise UnreadableCommand("a joined line splits an expansion")
            else:
                self.at = at
                token.add("$", quoted)

    def _substitution(self, token: Token, quoted: bool) -> None:
        if self.text.startswith("((", self.at + 1):
            self.at += 3
            self.sum(token, "))")
            token.parts.append(TokenPart("number", "", quoted))
        else:
            self.at += 2
            token.runs.append(self.program(")"))
            token.parts.append(TokenPart("unknown", "", quoted))

    def _ansi(self, token: Token) -> None:
        if self.posix:
            raise UnreadableCommand("shells disagree about $''")
        self.at += 2
        found: list[str] = []
        while not self.text.startswith("'", self.at):
            match = ANSI.match(self.text, self.at)
            if match is None:
                raise UnreadableCommand("a quote is not closed")
            found.append(ansi_character(match))
            self.at = match.end()
        self.at += 1
        token.add("".join(found), True)

    def _parameter(self, token: Token, quoted: bool) -> None:
        """Parse ``${…}`` from the dollar sign."""
        self.at += 2
        text = self.text
        prefix = ""
        if text[self.at : self.at + 1] in ("!", "#") and text[self.at + 1 : self.at + 2] not in (
            "}",
            ":",
            "-",
            "+",
            "=",
            "?",
        ):
            prefix = text[self.at]
            self.at += 1
        match = _PARAMETER.match(text, self.at)
        if match is None:
            raise UnreadableCommand("an expansion in braces can't be parsed")
        name = match.group()
        self.at = match.end()
        indexed = text.startswith("[", self.at)
        if indexed:
            self.at += 1
            if text.startswith(("@]", "*]"), self.at):
                self.at += 2
            else:
                self.sum(token, "]")
        if prefix == "!" and not (indexed or text.startswith(("*}", "@}"), self.at)):
            raise UnreadableCommand("${!…} reads a variable by a name known only when it runs")
        if text.startswith("}", self.at):
            self.at += 1
            kind = "number" if prefix == "#" else "unknown" if indexed or prefix else "variable"
            token.parts.append(TokenPart(kind, name, quoted))
            return
        self._operator(token, name, quoted)
        token.parts.append(TokenPart("unknown", name, quoted))

    def _operator(self, token: Token, name: str, quoted: bool) -> None:
        text = self.text
        first, second = text[self.at : self.at + 1], text[self.at + 1 : self.at + 2]
        if first == "@":
            if second not in _TRANSFORMS and second != "}":
                raise UnreadableCommand("${…@P} and similar expansions run the value of a variable")
            self.at += 1
        elif first == ":" and (not second or second not in "-=?+"):
            self.at += 1
            self.sum(token, "}")
            return
        elif not first or first not in ":-=?+#%/^,*":
            raise UnreadableCommand("an expansion in braces can't be parsed")
        if first == "=" or (first == ":" and second == "="):
            self.findings.wild.add(name)
            self.findings.bound.add(name)
        self._braced(token, quoted)

    def _braced(self, token: Token, quoted: bool) -> None:
        """Parse the rest of ``${x…`` up to its brace, and record only the commands that run in it."""
        aside = Token(self.at)
        while True:
            match = _BRACED.match(self.text, self.at)
            if match:
                aside.add(match.group(), False)
                self.at = match.end()
            char = self.text[self.at : self.at + 1]
            if not char:
                raise UnreadableCommand("an expansion in braces is not closed")
            if char == "}":
                self.at += 1
                break
            if char in "<>":
                if self.text.startswith("(", self.at + 1):
                    self._process(aside)
                else:
                    self.at += 1
            elif char == "'" and quoted:
                end = self.text.find("'", self.at + 1)
                if end < 0 or re.search(r"[$`\\}\"]", self.text[self.at : end]):
                    raise UnreadableCommand("single quotes in braces in double quotes are read in more than one way")
                aside.add(self.text[self.at + 1 : end], True)
                self.at = end + 1
            else:
                self._special(aside, char)
        token.runs.extend(aside.runs)
        token.behind.extend((*aside.parts, *aside.behind))

    def sum(self, token: Token, closer: str) -> None:
        """Parse arithmetic from here to ``closer``, and consume it. The operands are noted."""
        depth = 0
        aside = Token(self.at)
        while True:
            if depth == 0 and self.text.startswith(closer, self.at):
                self.at += len(closer)
                break
            depth = self._summand(aside, depth, closer)
        token.runs.extend(aside.runs)
        self.findings.counted_runs.extend(aside.runs)
        self.note(aside)

    def _summand(self, aside: Token, depth: int, closer: str) -> int:
        match = _NAME.match(self.text, self.at)
        if match:
            if _SIDE_BY_SIDE.match(self.text, match.end()):
                raise UnreadableCommand("arithmetic can't be parsed")
            self.findings.counted.add(match.group())
            self.at = match.end()
            return depth
        match = _SUM.match(self.text, self.at)
        if match:
            self.at = match.end()
            return depth
        char = self.text[self.at : self.at + 1]
        if char and char in "([":
            depth += 1
            self.at += 1
        elif char and char in ")]":
            depth -= 1
            self.at += 1
            if depth < 0:
                raise UnreadableCommand("parentheses in arithmetic do not match")
        elif char == "$":
            self._dollar(aside, True)
        elif char == "`":
            self._backticks(aside, True)
        elif char == '"':
            self._double(aside)
        elif char == ";" and closer == "))":
            self.at += 1
        else:
            raise UnreadableCommand("arithmetic can't be parsed")
        return depth

    def note(self, token: Token) -> None:
        """Record which variables ``token`` computes with; quoted text must be plain."""
        for part in (*token.parts, *token.behind):
            if part.kind == "text" and _NOT_PLAIN.search(part.text):
                raise UnreadableCommand("arithmetic over text in quotes can't be parsed")
            if part.kind == "text":
                self.findings.counted.update(_NAME.findall(part.text))
            elif part.kind != "number" and part.text:
                self.findings.counted.add(part.text)
