"""Masked copies of files that are named as secret. Every value in them is a secret, not only what looks like one.

Pure. Each format is taken apart into keys, comments, punctuation and line ends, which stay, and values. What no rule of
the format knows is a value too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.secrets.masking import MaskedText, Masking, blank, decoded, fill

_Write = Callable[[Masking, str], str]
_Check = Callable[[str], object]
_ENV_LINE = regex(
    r"(?P<key>[ \t]*(?:export[ \t]+|set[ \t]+)?[\w.\-/\[\]]{1,200}[ \t]*)(?P<sign>=>?|:)(?P<gap>[ \t]*)(?P<value>.*)"
)
_SECTION = regex(r"[ \t]*\[[\w .:\"'/@-]{0,200}\][ \t]*\r?")
_YAML_LINE = regex(
    r"(?P<head>[ \t]*(?:[-?][ \t]+)*)"
    r"(?:(?P<key>\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|[^\s#\"'{}\[\],&*!|>%@`][^\n]*?)[ \t]*:(?=[ \t\r]|$))?"
    r"(?P<gap>[ \t]*(?:[&!][^\s,{}\[\]]*[ \t]+)*)(?P<value>.*)"
)
_YAML_BLOCK = regex(r"[|>][-+0-9]*[ \t]*(?:#.*)?\r?")
_YAML_MARK = regex(r"(?:---|\.\.\.|%[A-Z]+ .*|\{\}|\[\]|-)?[ \t]*\r?")
_STRING = (
    r"\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)"
    r"|`[^`]*(?:`|\Z)"
)
_TOKEN = regex(
    rf"(?P<space>\s+)|(?P<string>{_STRING})|(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z))"
    r"|(?P<heredoc><<[-~<]*[ \t]*['\"]?(?P<tag>\w+)['\"]?\r?\n.*?\n[ \t]*(?P=tag)\b)"
    r"|(?P<word>[^\s\"'`{}\[\](),;=<>#]+)|(?P<mark>.)",
    re.DOTALL,
)
_SIGN = regex(r"[ \t\r\n]*(?:=>?|:)")
_TABLE = regex(r"^[ \t]*\[{1,2}[\w.\"' -]{1,200}\]{1,2}[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_XML = regex(
    r"(?P<kept><\?.*?\?>|<!DOCTYPE[^>]*>)|(?P<comment><!--.*?(?:-->|\Z))|(?P<cdata><!\[CDATA\[.*?(?:\]\]>|\Z))"
    r"|(?P<tag><(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)|(?P<text>[^<]+|<)",
    re.DOTALL,
)
_ATTRIBUTE = regex(r"([\w:.-]+[ \t\r\n]*=[ \t\r\n]*)(\"[^\"]*\"|'[^']*')")
_WORDS = regex(r"[^\s:]+")
_NETRC = frozenset({"machine", "default", "login", "user", "password", "account", "macdef", "host", "port"})
_LINES = (".renviron", ".s3cfg", ".boto", ".pypirc", ".my.cnf", ".databrickscfg")


def masked_copy(data: bytes, path: PurePath) -> MaskedText:
    """Mask every value of a file that is named as secret. The copy has the length of ``data``.

    A file of no known format, or one that its format's parser refuses once it is masked, keeps its white space only.
    """
    text = decoded(data)
    if text is None:
        return MaskedText(blank(data))
    masking = Masking()
    for write, check in _formats(path, text):
        try:
            write(masking, text)
            # Once more, now that all values are known that comments may repeat.
            copy = masking.looks(write(masking, text))
            check(copy)
        except (ValueError, RecursionError, IndexError):
            continue
        made = copy.encode("utf-8", "surrogateescape")
        if len(made) == len(data):
            return MaskedText(made, tuple(masking.values.items()))
    return MaskedText(blank(data), tuple(masking.values.items()))


def _formats(path: PurePath, text: str) -> Iterator[tuple[_Write, _Check]]:
    name = path.name.lower()
    if name.endswith((".json", ".tfstate", ".tfstate.backup", ".remote-sync.json", ".ftpconfig", ".dockercfg")):
        yield _tokens, json.loads
    if name.endswith(".toml"):
        yield _toml, _toml_check
    elif name.endswith((".yaml", ".yml", "kubeconfig")):
        yield _yaml, _yaml_check
    elif name.endswith((".tfvars", ".tfvars.json", ".json", "terraform.rc", ".terraformrc")):
        yield _tokens, str
    elif name.endswith((".php", ".rb")):
        yield _code, str
    elif name.endswith(".xml"):
        yield _xml, str
    elif name.endswith((".env", ".ini", ".properties", *_LINES)) or name.startswith((".env", "env.")):
        yield _lines, str
    elif name.endswith("history"):
        yield _typed, str
    else:
        # The name says nothing, as that of a hard link: see what the text looks like.
        if text.lstrip()[:1] in {"{", "["}:
            yield _tokens, json.loads
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("#", ";", "["))]
        if lines and "-----BEGIN" not in text and all("=" in line for line in lines):
            yield _lines, str
    yield (lambda masking, given: _words(masking, given, name)), str


def _toml_check(text: str) -> None:
    import tomllib  # noqa: PLC0415 - few files are TOML

    tomllib.loads(text)


def _yaml_check(text: str) -> None:
    import yaml  # noqa: PLC0415 - few files are YAML

    try:
        for _ in yaml.parse(text, yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _words(masking: Masking, text: str, name: str) -> str:
    """Every word but those that name a field of a login. The last word of a line is what the file's name says."""
    before = ""

    def masked(match: re.Match[str]) -> str:
        nonlocal before
        word, key = match[0], before
        before = word
        if word in _NETRC:
            return word
        last = text[match.end() : match.end() + 2].strip(" \t\r")[:1] in {"", "\n"}
        masking.value(word, f"{name} {key}" if last else key if key in _NETRC else "")
        return fill(word)

    return _WORDS.sub(masked, text)


def _typed(masking: Masking, text: str) -> str:
    """What was typed is masked as a whole; only what looks like a secret is one elsewhere too."""
    masking.looks(text)
    return _WORDS.sub(lambda match: fill(match[0]), text)


def _lines(masking: Masking, text: str) -> str:
    """``KEY=value`` in lines, with sections and comments; a value in quotes may go on over lines."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        stripped = line.strip(" \t\r\ufeff")
        if not stripped or _SECTION.fullmatch(line):
            parts.append(line)
        elif stripped[0] in "#;":
            parts.append(masking.comment(line))
        elif match := _ENV_LINE.fullmatch(line):
            start = at + match.start("value")
            close = _closing(text, start)
            end = max(end, text.find("\n", close) if close >= 0 else end) if close >= 0 else end
            end = len(text) if close >= 0 and text.find("\n", close) < 0 else end
            parts.append(text[at:start] + _line_value(masking, text[start:end], match["key"]))
        else:
            parts.append(masking.value(line))
        parts.append(text[end : end + 1])
        at = end + 1
    return "".join(parts)


def _closing(text: str, start: int) -> int:
    """Where the quote at ``start`` is closed; -1 when none begins there or it stays open."""
    quote = text[start : start + 1]
    if quote not in {'"', "'", "`"}:
        return -1
    at = start + 1
    while (at := text.find(quote, at)) >= 0 and text[at - 1] == "\\" and quote != "'":
        at += 1
    return at


def _line_value(masking: Masking, text: str, key: str) -> str:
    """One value with its quotes, and what follows the closing one."""
    close = _closing(text, 0)
    if close < 0:
        return masking.value(text, key)
    rest = text[close + 1 :]
    kept = masking.comment(rest) if rest.lstrip().startswith("#") else masking.value(rest)
    return text[0] + masking.value(text[1:close], key) + text[close] + kept


def _yaml(masking: Masking, text: str) -> str:
    lines = text.split("\n")
    parts: list[str] = []
    block = -1
    """How far the key of a block of text is indented."""
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        indent = len(line) - len(line.lstrip(" "))
        if block >= 0 and (not line.strip() or indent > block):
            parts.append(masking.value(line))
            continue
        block = -1
        match = _YAML_LINE.fullmatch(line)
        if match is None or _YAML_MARK.fullmatch(line) or line.lstrip().startswith("#"):
            parts.append(masking.comment(line) if line.lstrip().startswith("#") else line if match else fill(line))
            continue
        value, key = match["value"], match["key"] or ""
        if _YAML_BLOCK.fullmatch(value):
            block = len(match["head"]) if key else indent
            parts.append(line)
            continue
        open_, kind = value, value[:1]
        while kind in {'"', "'", "{", "["} and _is_open(open_, kind) and at < len(lines):
            open_ += "\n" + lines[at]
            at += 1
        parts.append(line[: match.start("value")] + _yaml_value(masking, open_, key, text))
    return "\n".join(parts)


def _is_open(text: str, kind: str) -> bool:
    if kind in {'"', "'"}:
        return re.match(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'", text, re.DOTALL) is None
    marks = [match["mark"] for match in _TOKEN.finditer(text) if match["mark"]]
    return sum((mark in "{[") - (mark in "}]") for mark in marks) > 0


def _yaml_value(masking: Masking, text: str, key: str, whole: str) -> str:
    kind = text[:1]
    if kind in {"{", "["}:
        return _tokens(masking, text)
    if kind in {'"', "'"} and (match := re.match(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'", text, re.DOTALL)):
        rest = text[match.end() :]
        kept = masking.comment(rest) if rest.lstrip().startswith("#") else masking.value(rest)
        return kind + masking.value(match[0][1:-1], key) + kind + kept
    if kind == "*" and re.search(rf"&{re.escape(text[1:].strip())}(?!\S)", whole):
        return text
    plain, mark, comment = text.partition(" #")
    return masking.value(plain, key) + masking.comment(mark + comment)


def _toml(masking: Masking, text: str) -> str:
    """Headers of tables stay; what stands between them is tokens."""
    parts: list[str] = []
    last = 0
    for match in _TABLE.finditer(text):
        # A line such as ``["a"]`` within an array is no header.
        if text[last : match.start()].count("[") == text[last : match.start()].count("]"):
            parts += (_tokens(masking, text[last : match.start()], "="), match[0])
            last = match.end()
    return "".join((*parts, _tokens(masking, text[last:], "=")))


def _tokens(masking: Masking, text: str, signs: str = ":=") -> str:
    """JSON, HCL and their like: strings and words are values, unless a sign follows that makes them keys."""
    parts: list[str] = []
    key = ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        sign = _SIGN.match(text, match.end())
        named = sign is not None and sign[0].strip()[0] in signs
        if match["comment"]:
            parts.append(token[:2] + masking.value(token[2:]) if token[0] == "/" else masking.comment(token))
        elif match["string"]:
            size = 3 if token.startswith(('"""', "'''")) and len(token) >= 6 else 1
            key = token if named else key
            closed = len(token) > size and token.endswith(token[:size])
            inner = token[size : len(token) - size] if closed else token[size:]
            parts.append(
                token if named else token[:size] + masking.value(inner, key) + (token[:size] if closed else "")
            )
        elif match["word"]:
            bare = token.rstrip(":") if ":" in signs else token
            named = named or bare != token
            key = bare if named else key
            parts.append(token if named else masking.value(token, key))
        elif match["heredoc"]:
            parts.append(_heredoc(masking, token, key))
        else:
            parts.append(token)
    return "".join(parts)


def _heredoc(masking: Masking, token: str, key: str) -> str:
    """A text of several lines between its first and last line."""
    head, _, body = token.partition("\n")
    body, _, tail = body.rpartition("\n")
    return f"{head}\n{masking.value(body, key)}\n{tail}"


def _code(masking: Masking, text: str) -> str:
    """A program: its strings and numbers are values, but for names of constants and of fields."""
    parts: list[str] = []
    key = ""
    for match in _TOKEN.finditer(text):
        token, before = match[0], text[max(0, match.start() - 20) : match.start()]
        if match["string"]:
            named = bool(re.search(r"(?:define|getenv|env|ENV)[ \t]*[\[(]\s*$", before)) or bool(
                re.match(r"\s*(?:=>|\])", text[match.end() :])
            )
            key = token if named else key
            parts.append(token if named else token[0] + masking.value(token[1:-1], key) + token[-1])
        elif match["comment"]:
            parts.append(masking.comment(token))
        elif match["heredoc"]:
            parts.append(_heredoc(masking, token, key))
        elif match["word"]:
            key = token if token[0] in "$@" or token.isidentifier() else key
            parts.append(fill(token) if token[0].isdigit() else token)
        else:
            parts.append(token)
    return "".join(parts)


def _xml(masking: Masking, text: str) -> str:
    parts: list[str] = []
    key = ""
    for match in _XML.finditer(text):
        token = match[0]
        if match["tag"]:
            key = token.strip("</> ").partition(" ")[0]
            parts.append(
                _ATTRIBUTE.sub(
                    lambda each: each[1] + each[2][0] + masking.value(each[2][1:-1], each[1]) + each[2][-1], token
                )
            )
        elif match["text"]:
            parts.append(masking.value(token, key))
        elif match["cdata"]:
            parts.append(token[:9] + masking.value(token[9:].removesuffix("]]>"), key) + "]]>" * token.endswith("]]>"))
        elif match["comment"]:
            inner = token[4:].removesuffix("-->")
            parts.append("<!--" + masking.value(inner) + "-->" * token.endswith("-->"))
        else:
            parts.append(token)
    return "".join(parts)
