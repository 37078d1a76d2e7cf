"""The values of words as far as they are certain: quotes removed, braces expanded, known variables inserted.

Also whether arithmetic only uses numbers. Uncertain words have no text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.simple_commands import KnownListing, ShellWord
from ba_tui.permissions.shell.tree import (
    Chain,
    CommandList,
    Pipeline,
    SimpleCommand,
    Token,
    TokenFindings,
    TokenPart,
    UnreadableCommand,
)

MOST_WORDS = 64
Several = KnownListing | tuple[ShellWord, ...]
MOST_UNFOLDED = 5_000
"""Maximum words that braces may make if they are not expanded here; more would exhaust the shell's memory."""

# Tildes for earlier folders of the shell.
_ELSEWHERE = regex(r"~[-+0-9]")

_SPLITS = regex(r"[\s*?\[\\]")
_SEQUENCE = regex(r"([-+]?[0-9]{1,6}|.)\.\.([-+]?[0-9]{1,6}|.)(?:\.\.[-+]?[0-9]+)?", re.DOTALL)
_LONG_SEQUENCE = regex(r"[-+]?[0-9]{7,}\.\.|[^.]*\.\.[-+]?[0-9]{7}")
_COUNTED = regex(r"(-?[0-9]{1,4})\.\.(-?[0-9]{1,4})")
_INTEGER = regex(r"[-+]?[0-9]*")


Values = Mapping[str, str | Several]
"""Values of variables: a text, one of several words, or one of several files."""


def words_of(token: Token, known: Values) -> list[ShellWord]:
    """Return the words of ``token``: one, except with braces."""
    if token.braces and _unfolds(token):
        return _unfolded(token)
    text = value_of(token, known)
    if text is not None and token.raw.startswith("~") and _ELSEWHERE.match(token.raw):
        text = None
    glob = token.pattern and _globs("".join("\0" if part.quoted else part.text for part in token.parts))
    if text is None and not glob and known:
        return [ShellWord(None, token.raw, among=_among(token, known))]
    return [ShellWord(text, token.raw, glob)]


def at_home(token: Token) -> Token:
    """Return ``token`` with a tilde in place of a leading ``$HOME`` that ends at a slash."""
    first, *rest = token.parts or (TokenPart("text", "", quoted=False),)
    if (first.kind, first.text) != ("variable", "HOME") or token.braces or any(part.kind != "text" for part in rest):
        return token
    below = "".join(part.text for part in rest)
    if below and not below.startswith("/"):
        return token
    return replace(token, parts=[TokenPart("text", "~", quoted=False), *rest], raw=f"~{below}")


def value_of(token: Token, known: Values) -> str | None:
    """Return the text of ``token`` without expanding braces and patterns, as an assignment uses it."""
    if len(token.parts) == 1 and token.parts[0].kind == "text":
        return token.parts[0].text
    found: list[str] = []
    for part in token.parts:
        if part.kind == "text":
            found.append(part.text)
            continue
        value = known.get(part.text) if part.kind == "variable" else None
        if not isinstance(value, str) or (not part.quoted and (not value or _SPLITS.search(value))):
            return None
        found.append(value)
    return "".join(found)


def _among(token: Token, known: Values) -> Several | None:
    """Return the words or files that a word with one variable may be."""
    parts = token.parts
    places = [at for at, part in enumerate(parts) if part.kind != "text"]
    if len(places) != 1 or parts[places[0]].kind != "variable":
        return None
    value, quoted = known.get(parts[places[0]].text), parts[places[0]].quoted
    before, after = ("".join(part.text for part in side) for side in (parts[: places[0]], parts[places[0] + 1 :]))
    if isinstance(value, tuple):
        words = ((f"{before}{word.text}{after}", word) for word in value)
        return tuple(
            ShellWord(text, _as_written(text, word, before), word.glob, split=not quoted) for text, word in words
        )
    if isinstance(value, KnownListing) and not before and not after and (quoted or not value.ended):
        return value
    return None


def _as_written(text: str, word: ShellWord, before: str) -> str:
    """Return the source form of a word: the shell expands only an unquoted tilde at its start."""
    return text if before or not text.startswith("~") or word.raw.startswith("~") else f"'{text}'"


def _globs(bare: str) -> bool:
    """Return whether a word is a pattern; NUL stands for quoted characters."""
    opening = bare.find("[")
    return "*" in bare or "?" in bare or (opening >= 0 and "]" in bare[opening + 2 :])


def _unfolds(token: Token) -> bool:
    bare = "".join(part.text if part.kind == "text" and not part.quoted else "\0" for part in token.parts)
    opening = bare.find("{")
    return opening >= 0 and ("," in bare[opening:] or ".." in bare[opening:]) and "}" in bare[opening:]


def _unfolded(token: Token) -> list[ShellWord]:
    """Return the words that braces make; one unknown word if the braces are unclear.

    Raises:
        UnreadableCommand: they make more words than a machine can hold.
    """
    unknown = [ShellWord(None, token.raw, True)]
    if _at_most(token.raw) > MOST_UNFOLDED:
        raise UnreadableCommand("braces make too many words")
    if any(part.kind != "text" for part in token.parts) or token.raw.count("{") > MOST_WORDS:
        return unknown
    characters = [(char, part.quoted) for part in token.parts for char in part.text]
    bare = "".join("\0" if quoted else char for char, quoted in characters)
    if bare.count("{") != bare.count("}") or re.search(r"\{\}|\{[^,{}]*\.\.[^}]*[^0-9}.,-]|\}[^{]*\}.*\{", bare):
        return unknown
    found = _expand(characters)
    if found is None or len(found) > MOST_WORDS:
        return unknown
    made: list[ShellWord] = []
    for piece in found:
        text = "".join(char for char, _ in piece)
        if text or any(quoted for _, quoted in piece):
            made.append(ShellWord(text, token.raw, _globs("".join("\0" if quoted else char for char, quoted in piece))))
    return made


def _at_most(raw: str) -> int:
    """Return an upper bound of the number of words that the braces in ``raw`` make."""
    found, open_ = 1, list[list[int]]()
    for at, char in enumerate(raw):
        if char == "{":
            open_.append([at, 1])
        elif char == "," and open_:
            open_[-1][1] += 1
        elif char == "}" and open_:
            start, several = open_.pop()
            found *= max(several, _length(raw[start + 1 : at]))
            if found > MOST_UNFOLDED:
                break
    return found


def _length(inside: str) -> int:
    """Return the number of words of a range like ``1..9``; 0 for other texts."""
    match = _SEQUENCE.fullmatch(inside[:40])
    if match is None:
        return MOST_UNFOLDED + 1 if _LONG_SEQUENCE.match(inside[:40]) else 0
    first, last = (int(each) if each.lstrip("-+").isdigit() else ord(each) for each in match.groups())
    return abs(last - first) + 1


_Characters = Sequence[tuple[str, bool]]


def _expand(characters: _Characters) -> list[list[tuple[str, bool]]] | None:
    """Return all expansions; None if the braces are unclear."""
    start = next((at for at, item in enumerate(characters) if item == ("{", False)), None)
    if start is None:
        return None if ("}", False) in characters else [list(characters)]
    depth, pieces, begin = 0, list[_Characters](), start + 1
    for at in range(start, len(characters)):
        char, quoted = characters[at]
        if quoted:
            continue
        depth += (char == "{") - (char == "}")
        if (char == "," and depth == 1) or depth == 0:
            pieces.append(characters[begin:at])
            begin = at + 1
        if depth == 0:
            break
    else:
        return None
    inside = _alternatives(pieces)
    after = _expand(characters[begin:])
    if inside is None or after is None or len(inside) * len(after) > MOST_WORDS:
        return None
    return [[*characters[:start], *middle, *rest] for middle in inside for rest in after]


def _alternatives(pieces: list[_Characters]) -> list[list[tuple[str, bool]]] | None:
    if len(pieces) == 1:
        match = _COUNTED.fullmatch("".join("\0" if quoted else char for char, quoted in pieces[0]))
        if match is None:
            return None
        first, last = int(match.group(1)), int(match.group(2))
        if abs(last - first) >= MOST_WORDS or any(re.match(r"-?0[0-9]", group) for group in match.groups()):
            return None
        step = 1 if last >= first else -1
        return [[(char, False) for char in str(number)] for number in range(first, last + step, step)]
    found: list[list[tuple[str, bool]]] = []
    for piece in pieces:
        more = _expand(piece)
        if more is None:
            return None
        found.extend(more)
    return found


def numbers_in(token: Token, findings: TokenFindings) -> list[str] | None:
    """Return the variables in a token that can only be a whole number; None if it may be another text. Substitutions
    are noted."""
    findings.counted_runs.extend(token.runs)
    names: list[str] = []
    for part in (*token.parts, *token.behind):
        if part.kind == "text" and not _INTEGER.fullmatch(part.text) and not _COUNTED.fullmatch(part.text.strip("{}")):
            return None
        if part.kind in ("variable", "unknown") and part.text:
            names.append(part.text)
    return names


_DATE = regex(r"\+(?:%[sYmdHMSjNueVwyk])+")
_POSITIONAL = regex(r"[0-9@*_]|[1-9][0-9]+")


def arithmetic_problem(findings: TokenFindings) -> str:
    """Return why an arithmetic operand may be no number; empty if all are.

    Bash runs ``$(…)`` inside text that it evaluates as arithmetic. The parser has noted the operands.
    """
    looked: set[str] = set()
    todo = list(findings.counted)
    while todo:
        name = todo.pop()
        if name in looked:
            continue
        looked.add(name)
        if _POSITIONAL.fullmatch(name):
            return f"it calculates with ${name}, whose value is known only when it runs"
        if name in findings.wild or "*" in findings.wild:
            return f"it calculates with {name!r}, whose value is known only when it runs"
        for token in findings.sources.get(name, ()):
            names = numbers_in(token, findings)
            if names is None:
                return f"it calculates with {name!r}, which may be no number"
            findings.counted.update(names)
            todo += names
    if not all(_counts(run) for run in findings.counted_runs):
        return "it calculates with the output of a command"
    return ""


def _counts(run: object) -> bool:
    """Return whether a substitution only prints numbers."""
    if not isinstance(run, CommandList) or len(run.items) != 1 or not isinstance(run.items[0], Chain):
        return False
    chain = run.items[0]
    last = chain.items[-1]
    if isinstance(last, Pipeline):
        if len(last.items) > 1 and _texts(last.items[-1])[:2] == ["tr", "-d"]:
            return _numeric(last.items[-2], piped=len(last.items) > 2)
        last, piped = last.items[-1], True
    else:
        piped = False
    return len(chain.items) == 1 and _numeric(last, piped)


def _texts(node: object) -> list[str | None]:
    return [value_of(token, {}) for token in node.words] if isinstance(node, SimpleCommand) else []


def _numeric(node: object, piped: bool) -> bool:
    words = _texts(node)
    if not words or words[0] is None:
        return False
    rest = words[1:]
    options = all(word is not None and word.startswith("-") for word in rest)
    match words[0]:
        case "nproc":
            return options
        case "wc":
            return options and not any(word and "files0" in word for word in rest)
        case "grep":
            return piped and len(rest) == 2 and rest[0] in ("-c", "-ci", "-ic", "-cE", "-cF", "-cv", "-vc")
        case "date":
            return len(rest) == 1 and rest[0] is not None and bool(_DATE.fullmatch(rest[0]))
        case "id":
            return rest in (["-u"], ["-g"])
        case "seq":
            return all(word is not None and re.fullmatch(r"-?[0-9]+", word) for word in rest)
        case "git":
            return rest[:2] == ["rev-list", "--count"]
        case "stat":
            return rest[:2] in (["-c", "%s"], ["-c%s"], ["-c", "%Y"], ["-f", "%z"], ["-f", "%m"])
        case _:
            return False
