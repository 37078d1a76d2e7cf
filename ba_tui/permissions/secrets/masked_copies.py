"""Masked copies of files with secrets, which a confined command sees in their place.

In files with secret names every value is masked: each format is split into keys, comments, punctuation and line ends,
which stay, and values. Unrecognised text counts as a value. A copy belongs to one state of its file and is remade
before the next command once the file has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TypeAlias

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.secrets.masking import KnownSecrets, MaskedText, Masker, blank, decoded, fill, masked_places
from ba_tui.processes.scratch import make_scratch, scratch_path
from ba_tui.resources import process_runs

_Write = Callable[[Masker, str], str]
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
    """Mask every value of a file with a secret name. The copy has the length of ``data``.

    If the format is unknown, or its parser refuses the masked text, only white space is kept.
    """
    text = decoded(data)
    if text is None:
        return MaskedText(blank(data))
    masking = Masker()
    for write, check in _formats(path, text):
        try:
            write(masking, text)
            # Repeat it, since comments may contain values that are known only now.
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
        # The name tells nothing, for instance that of a hard link: inspect the text.
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


def _words(masking: Masker, text: str, name: str) -> str:
    """Mask every word except field names of a login. The last word of a line gets the file's name as its key."""
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


def _typed(masking: Masker, text: str) -> str:
    """Mask typed text completely; outside of the file only text that looks like a secret counts as one."""
    masking.looks(text)
    return _WORDS.sub(lambda match: fill(match[0]), text)


def _lines(masking: Masker, text: str) -> str:
    """Mask ``KEY=value`` lines with sections and comments; a quoted value may span lines."""
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
    """Return where the quote at ``start`` is closed; -1 if none begins there or it is not closed."""
    quote = text[start : start + 1]
    if quote not in {'"', "'", "`"}:
        return -1
    at = start + 1
    while (at := text.find(quote, at)) >= 0 and text[at - 1] == "\\" and quote != "'":
        at += 1
    return at


def _line_value(masking: Masker, text: str, key: str) -> str:
    """Mask one value with its quotes, and the text after the closing quote."""
    close = _closing(text, 0)
    if close < 0:
        return masking.value(text, key)
    rest = text[close + 1 :]
    kept = masking.comment(rest) if rest.lstrip().startswith("#") else masking.value(rest)
    return text[0] + masking.value(text[1:close], key) + text[close] + kept


def _yaml(masking: Masker, text: str) -> str:
    lines = text.split("\n")
    parts: list[str] = []
    block = -1
    """Indentation of the key of a block scalar."""
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


def _yaml_value(masking: Masker, text: str, key: str, whole: str) -> str:
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


def _toml(masking: Masker, text: str) -> str:
    """Mask TOML: table headers stay, and the text between them is split into tokens."""
    parts: list[str] = []
    last = 0
    for match in _TABLE.finditer(text):
        # A line such as ``["a"]`` inside an array is no header.
        if text[last : match.start()].count("[") == text[last : match.start()].count("]"):
            parts += (_tokens(masking, text[last : match.start()], "="), match[0])
            last = match.end()
    return "".join((*parts, _tokens(masking, text[last:], "=")))


def _tokens(masking: Masker, text: str, signs: str = ":=") -> str:
    """Mask JSON, HCL and similar formats: strings and words are values, unless a following sign makes them keys."""
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


def _heredoc(masking: Masker, token: str, key: str) -> str:
    """Mask the lines between the first and last line of a heredoc."""
    head, _, body = token.partition("\n")
    body, _, tail = body.rpartition("\n")
    return f"{head}\n{masking.value(body, key)}\n{tail}"


def _code(masking: Masker, text: str) -> str:
    """Mask a program: its strings and numbers are values, except names of constants and fields."""
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


def _xml(masking: Masker, text: str) -> str:
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


LARGEST = 1_000_000
"""Maximum bytes of a file that is searched or masked value by value."""
ATTEMPTS = 3
HIDDEN = "allow it with commands.read in your settings (ba config edit)"

FileStamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, mtime and ctime. Nobody can set the ctime back."""


def stamp_of(status: os.stat_result) -> FileStamp:
    """Return the stamp that identifies one state of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stamp_at(path: str | Path) -> FileStamp | None:
    """Return the stamp of a regular file; None for anything else, including links."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return stamp_of(status) if stat.S_ISREG(status.st_mode) else None


def read_stable(path: str | Path, most: int = LARGEST) -> tuple[os.stat_result, bytes] | None:
    """Return the consistent status and content of a regular file; the content is empty for a file larger than ``most``.

    None if the file can't be read, is a link, or keeps changing.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        for _ in range(ATTEMPTS):
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                return None
            if status.st_size > most:
                return status, b""
            data = os.pread(number, most + 1, 0)
            if stamp_of(os.fstat(number)) == stamp_of(status) and len(data) == status.st_size:
                return status, data
    except OSError:
        return None
    finally:
        os.close(number)
    return None


def save_copy(folder: Path, path: str | Path, status: os.stat_result, data: bytes) -> Path:
    """Write a private copy with the file's time; return its path. The name reveals nothing."""
    name = hashlib.sha256(os.fsencode(path) + repr(stamp_of(status)).encode()).hexdigest()[:32]
    target, draft = folder / name, folder / f"{name}.{os.getpid()}-{threading.get_ident()}"
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(number, "wb") as file:
            file.write(data)
            # The rest of a large file becomes a hole, which takes no space.
            file.truncate(status.st_size)
        if status.st_mode & stat.S_IXUSR:
            draft.chmod(0o700)
        os.utime(draft, ns=(status.st_atime_ns, status.st_mtime_ns))
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    return target


class MaskedCopies:
    """The copies of one session. ``folder`` creates their private folder; replaced values are added to ``known``;
    ``shown`` formats a path. Thread-safe; methods block."""

    def __init__(self, folder: Callable[[], Path], known: KnownSecrets, shown: Callable[[Path], str]) -> None:
        self._folder = folder
        self._known = known
        self._shown = shown
        self._lock = threading.Lock()
        self._made: dict[Path, tuple[FileStamp, Path | None]] = {}

    def of_secret(self, path: Path) -> Path:
        """Return the copy of a file with a secret name."""
        made = self._current(path, lambda data: masked_copy(data, path))
        return made or self._line(path)

    def of_rule(self, path: Path) -> Path:
        """Return a one-line replacement for a file that a permission rule protects."""
        return self._line(path, "a permission rule is about reading it (ba permissions list)")

    def of_content(self, path: Path, stamp: FileStamp, copy: Path) -> Path | None:
        """Return the copy of a file with secrets in its text; None if it contains none any more.

        ``copy`` was made when the file had this ``stamp``.
        """
        with self._lock:
            if stamp_at(path) == stamp and copy.exists():
                return copy
        made = self._current(path, masked_places)
        # An unreadable file may still contain its earlier secrets.
        return made or (self._line(path) if self._made.get(path) is None and stamp_at(path) else None)

    def _current(self, path: Path, mask: Callable[[bytes], MaskedText | None]) -> Path | None:
        with self._lock:
            stamp, known = stamp_at(path), self._made.get(path)
            if stamp and known and known[0] == stamp and (known[1] is None or known[1].exists()):
                return known[1]
            read = read_stable(path)
            if read is None:
                self._made.pop(path, None)
                return None
            status, data = read
            made = mask(data) if status.st_size <= LARGEST else None
            if made:
                keep(self._known, made.values)
            copy = save_copy(self._folder(), path, status, made.data) if made else None
            if status.st_size > LARGEST:
                copy = save_copy(self._folder(), path, status, self._told(path))
            if known and known[1] and known[1] != copy:
                # Running commands keep the old copy open.
                with suppress(OSError):
                    known[1].unlink()
            self._made[path] = (stamp_of(status), copy)
            return copy

    def _told(self, path: Path, why: str = HIDDEN) -> bytes:
        shown = self._shown(path)
        line = f"ba hides {shown!r}" if not shown.isprintable() or "'" in shown else f"ba hides {shown}"
        return f"{line}; {why}\n".encode()

    def _line(self, path: Path, why: str = HIDDEN) -> Path:
        """Return a file with one line: that the file is hidden, and why."""
        target = self._folder() / hashlib.sha256(os.fsencode(path) + b"\0" + why.encode()).hexdigest()[:32]
        if not target.exists():
            number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(number, "wb") as file:
                file.write(self._told(path, why))
        return target


def private_folder(base: Path | None) -> Path:
    """Create a private folder for copies, in ``base`` or among temporary files.

    Folders in ``base`` of processes that have ended are removed first.
    """
    if base is None:
        return make_scratch(scratch_path("masks"))
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in base.iterdir():
        number = folder.name.partition("-")[0]
        if number.isdigit() and int(number) != os.getpid() and not process_runs(int(number)):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(os.path.realpath(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=base)))


def keep(known: KnownSecrets, values: Iterable[tuple[str, str]]) -> None:
    """Add replaced values, each with its kind, to ``known``."""
    kinds: dict[str, list[str]] = {}
    for value, kind in values:
        kinds.setdefault(kind, []).append(value)
    for kind, each in kinds.items():
        known.add(each, kind)
