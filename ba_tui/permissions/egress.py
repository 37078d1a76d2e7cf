"""Detects calls that may carry data to a host that the user has not named: data read here, secrets, encoded text.

Well-disguised data is undetectable. So mode auto asks about every unnamed host once any data was read. In other modes,
if a rule allows the call, it asks once a secret or more than ``LARGE`` characters were read.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import string
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, takewhile
from typing import Any, cast
from urllib.parse import unquote_plus, urlsplit

from ba_tui.core.events import MAIN, Event, Judged, ToolStarted
from ba_tui.core.messages import NOTE, Message, Text, ToolOutput, weighty
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import INSTRUCTIONS, SKILL
from ba_tui.core.tool import Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.permissions.answers import NETWORK
from ba_tui.permissions.lookalikes import addresses
from ba_tui.permissions.secrets.scanner import find, looks_drawn, placeholders
from ba_tui.permissions.secrets.sharing import kinds_of

UNREADABLE = "an unknown host"
_LOOKED_AT = 20_000
_DEEPEST = 10
_PARTS = regex(r"\n|;|&&|\|\|")
_VARIABLE = regex(r"\$\{[^}]*\}|\$\w+")
_PROGRAM = regex(
    r"(?:^|[\s/(\"'])(curl|wget|aria2c|https?|xh|ssh|scp|sftp|rsync|ftp|lftp|telnet|nc|ncat|netcat|socat|dig|drill|kdig"
    r"|nslookup|host|getent|ping6?|traceroute|tracepath|mtr|whois|openssl|resolvectl|systemd-resolve|websocat|mosh|git)"
    r"(?=\s|$)([\s\S]*)",
    re.IGNORECASE | re.DOTALL,
)
_LOOK_UPS = frozenset((
    *("ssh", "sftp", "telnet", "nc", "ncat", "netcat", "dig", "drill", "kdig", "nslookup", "host", "ping", "ping6"),
    *("traceroute", "tracepath", "mtr", "whois", "mosh"),
))  # fmt: skip
"""Programs whose arguments are hosts and hardly ever files."""
_GIT_WORD = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])++"
_KEYS = r"(?:user\.(?:name|email)|commit\.gpgsign|color\.\w+|advice\.\w+|core\.quotepath)"
_LOCAL_GIT = regex(
    rf"(?:\s+(?:-c\s+(?:{_KEYS}={_GIT_WORD}|'{_KEYS}=[^']*'|\"{_KEYS}=[^\"]*\")"
    rf"|-C\s+{_GIT_WORD}|--no-pager|-P))*"
    r"\s+(?:add|blame|branch|cat-file|checkout|cherry-pick|clean|commit|config|describe|diff|for-each-ref|grep|init|log"
    r"|ls-files|ls-tree|merge|merge-base|mv|notes|reflog|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|stash"
    r"|status|switch|tag|worktree)(?=\s|$)"
)
"""Git calls that contact no host: text that looks like a host is part of a message, key, tag or path."""
_DOMAIN = regex(r"(?:(?<![\w/.-])|(?<=[)`}]\.))(?:[A-Za-z0-9_-]+\.)+[A-Za-z][A-Za-z0-9-]{1,23}(?![\w-])\.?")
_NUMBER = regex(r"(?<![\w./-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_FILE = regex(
    r"\.(?:py|js|ts|json|ya?ml|toml|txt|md|csv|tsv|html?|xml|sh|log|conf|cfg|ini|lock|tar|gz|tgz|bz2|xz|zip|7z|whl|parquet"
    r"|xlsx?|pdf|png|jpe?g|svg|gif|sql|db|sqlite|pem|crt|key|bak|tmp|out|bin|so|deb|rpm|iso|git|patch|diff|rs|go|java|c|h"
    r"|cpp|rb|pl|php)$",
    re.IGNORECASE,
)
_WORD = regex(r"[^\s\"']+")
_PLACE_KEYS = regex(
    r"(?:^|_)(?:host|hostname|domain|server|url|uri|endpoint|address|site|link|webhook|target|to)s?$", re.IGNORECASE
)
_BARE = regex(r"(?:[\w-]+\.)+[A-Za-z]{2,24}(?::\d+)?(?:/\S*)?")
_DEVICE = regex(r"/dev/(?:tcp|udp)/([\w.-]+)/")
"""Bash opens a connection when it reads or writes such a path."""
_CODE = regex(
    r"\b(?:socket|getaddrinfo|gethostby\w+|requests|httpx|aiohttp|urllib3?|http\.client|smtplib|ftplib|paramiko|dns"
    r"|inet_aton|https?\.(?:get|request)|fetch(?=\()|TCPSocket|Net::HTTP|fsockopen|file_get_contents)\b"
)
_INTERPRETER = regex(r"(?:^|[\s/;&|(])(?:python[\d.]*|node|deno|bun|ruby|perl|php|lua)\s")
_CALLED = regex(r"\s*[(,:;]|\s+import\b")


def hosts_of(text: str) -> Iterator[str]:
    """Yield the hosts of the addresses in ``text``; UNREADABLE for an address that can't be parsed."""
    for address in addresses(text):
        try:
            yield (urlsplit(address).hostname or UNREADABLE).lower()
        except ValueError:
            yield UNREADABLE


def hosts_of_command(command: str) -> Iterator[str]:
    """Yield the hosts among the arguments of programs in a shell command, even without an address."""
    for part in _PARTS.split(_VARIABLE.sub("X", command[:_LOOKED_AT])):
        yield from (host for host in _DEVICE.findall(part) if host)
        found = _PROGRAM.search(part)
        while found and found[1].lower() == "git" and (local := _LOCAL_GIT.match(found[2])):
            # Its arguments are no hosts; a program behind it in the pipeline may contact one.
            part = found[2][local.end() :]
            found = _PROGRAM.search(part)
        if found:
            yield from _of_words(found[1].lower(), found[2], part)


def hosts_of_code(code: str) -> Iterator[str]:
    """Yield the hosts in Python code that uses the network or starts programs."""
    yield from hosts_of(code[:_LOOKED_AT])
    if _CODE.search(code):
        yield from _of_code(code[:_LOOKED_AT])
    yield from hosts_of_command(code)


def hosts_of_inline_code(command: str) -> Iterator[str]:
    """Yield the hosts in code that a shell command passes to an interpreter."""
    text = command[:_LOOKED_AT]
    if _INTERPRETER.search(text) and _CODE.search(text):
        yield from (each for each in _of_code(text) if not _FILE.search(each))


def hosts_of_values(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hosts in a third-party tool's arguments: any address, and names in fields for hosts."""
    for key, text in _texts(args, ""):
        yield from hosts_of(text)
        if _PLACE_KEYS.search(key) and _BARE.fullmatch(text.strip()) and not _FILE.search(text.strip()):
            yield re.split("[:/]", text.strip())[0].lower()


def _of_words(program: str, rest: str, part: str) -> Iterator[str]:
    known: list[str] = [each for each in hosts_of(part) if each != UNREADABLE]
    names = _domains(rest) if program in _LOOK_UPS else (each for each in _domains(rest) if not _FILE.search(each))
    known += (each.lower().rstrip(".") for each in names)
    known += _NUMBER.findall(rest)
    if not known and program in _LOOK_UPS:
        words = [word for word in _WORD.findall(rest) if not word.startswith(("-", "+", ">", "<", "@"))]
        first = words[0].rpartition("@")[2].partition(":")[0].lower() if words else ""
        known = [first if re.fullmatch(r"[\w.-]+", first) else UNREADABLE] if first else []
    yield from dict.fromkeys(known)


def _of_code(code: str) -> Iterator[str]:
    """Yield the hosts in code. A dotted name that is called or imported only shows that some host is contacted."""
    names, called = list[str](), False
    for match in _DOMAIN.finditer(code):
        if _CALLED.match(code, match.end()):
            called = True
        else:
            names.append(match[0].lower().rstrip("."))
    yield from names
    if called:
        yield UNREADABLE


def _domains(text: str) -> Sequence[str]:
    return _DOMAIN.findall(text)


def _texts(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every text in the arguments, with the name of its field."""
    if isinstance(value, str):
        yield key, value[:_LOOKED_AT]
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for name, item in cast("Mapping[Any, Any]", value).items():
            yield from _texts(item, str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for item in cast("Sequence[Any]", value):
            yield from _texts(item, key, depth + 1)


SEARCH = "web_search"
WEB = ("web_fetch", SEARCH, "extract_links")
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_EMPTY = frozenset({"permission_denied", "invalid_parameters", "not_found"})
"""Errors whose text ba itself writes."""
_GIVEN = regex(rf"^{NOTE}\s(?:The (?:user|person) ran |[\s\S]*\bis data\b)")
"""Notes that contain attached files, output of the user's commands, or agents' reports."""
WRITTEN = (*WEB, "read_file", "grep", "read_artifact")
"""Tools whose results the model did not compose: an address found in them may be followed."""
_BLOB = regex(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_COMMIT = regex(r"(?<![^/])[0-9a-f]{40}(?![^/])")
_LABEL = 30
_QUERY, _PATH, _LEAST = 24, 40, 12
"""Consecutive characters of earlier results that rule out coincidence."""
_LONGEST = 500
_STEP = 10
_SIGNS = str.maketrans(dict.fromkeys(string.punctuation + string.whitespace))
_ROT13 = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[13:] + string.ascii_lowercase[:13])
_READ = 2_000_000
_AT_ONCE = 32_000
"""Characters that are scanned on the event loop."""
_PIECE, _OVERLAP = 32_000, 2_000
_RESULTS = 400
OWN = ("activate_skill", "tool_search", "ask_user", "todo_write", "todo_read", "now", "calculator")
"""Tools whose results contain no data of this machine."""
NOTED, SHORT = "note", 400
"""Notes accompany prompts; short ones hold the time and the like."""
_TOLD = regex(rf"<(?:{INSTRUCTIONS}|{SKILL}) ")
LARGE = 2_000
"""Characters of local data that may be read before every unnamed host asks."""


class Egress:
    """core.agent.Interceptor: records what was said and read; the policy calls ``reason`` before a call runs."""

    def __init__(self) -> None:
        self._transcripts: dict[str, Transcript] = {}
        self._noted: dict[str, tuple[str, int]] = {}
        """Per branch: the last message that was scanned, and how many of its blocks."""
        self._called: dict[str, str] = {}
        """Tool names by call id."""
        self._sent: dict[str, list[str]] = {}
        """Data that earlier calls carried in addresses, by host; without those of the newest answer."""
        self._read = 0
        self._secret = ""
        """The kind of secret that was read; empty for none."""
        self._touched = False
        """Whether any agent read any data."""
        self._words: dict[str, str] = {}
        """The user's words by message id. Compaction removes them from a transcript."""
        self._calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
        """Tool names and arguments of running calls, by id."""
        self._agreed: set[str] = set()
        """Hosts of calls that the user allowed."""
        self._searches = False
        """Whether the user allowed a web search."""

    async def before(self, branch: Branch) -> None:
        self._transcripts[branch.name] = branch.transcript
        messages, noted = branch.transcript.messages, self._noted.get(branch.name, ("", 0))
        news = takewhile(lambda message: message.id != noted[0], reversed(messages))
        if noted[0] and not weighty(chain(news, messages[-1:]), _AT_ONCE):
            self._take(branch, messages, noted)
        else:
            # In a continued session, the whole history is new.
            await asyncio.to_thread(self._take, branch, messages, noted)

    def _take(self, branch: Branch, messages: Sequence[Message], noted: tuple[str, int]) -> None:
        """Scan everything after the ``noted`` block. Takes time in proportion to it."""
        last, count = noted
        new: list[Message] = []
        for message in reversed(messages):
            if message.id == last:
                new.append(replace(message, blocks=message.blocks[count:]))
                break
            new.append(message)
        if messages:
            self._noted[branch.name] = messages[-1].id, len(messages[-1].blocks)
        self._called.update(_called(new))
        for message in reversed(new):
            for host, words in _sent(message):
                self._sent.setdefault(host, []).append(words)
        if branch.transcript.agent == MAIN:
            for message in reversed(new):
                if _typed(message) and (words := message.own_text):
                    self._words[message.id] = f"{self._words.get(message.id, '')}\n{words}"
        self._note(new)

    def apply(self, event: Event) -> None:
        """Record which calls the user allowed: their hosts count as named from then on."""
        match event:
            case ToolStarted(call=call):
                while len(self._calls) >= _RESULTS:
                    self._calls.pop(next(iter(self._calls)))
                self._calls[call.id] = (call.name, call.input)
            case Judged(verdict="allow", by="person", tool=tool, reason=reason, call_id=id, hash=hash):
                name, args = self._calls.get(id, ("", {}))
                if tool == NETWORK:
                    self._agreed.add(reason.removeprefix("to reach ").rpartition(":")[0] or reason.rpartition(" ")[2])
                    self._agreed.add(reason.rpartition(" ")[2].partition(":")[0])
                elif name == tool and args_hash(args) == hash:
                    self._searches = self._searches or tool == SEARCH
                    self._agreed.update(_hosts(tool, args, remote=False), hosts_of_values(args))
            case _:
                pass

    def unnamed(self, tool: Tool, args: Mapping[str, Any], *, held: bool) -> str:
        """Return why a call in mode auto should ask; empty if it should not.

        Once data was read, every host that the user has not named asks, since disguised data is undetectable. ``held``:
        the sandbox blocks the network except for hosts that ask themselves.
        """
        remote = tool.facts.category == "mcp"
        if not self._touched or not (remote or tool.effect in {Effect.NETWORK, Effect.EXECUTE}):
            return ""
        if tool.name == SEARCH:
            return "" if self._searches else "the search text goes to the search engine after data was read"
        if tool.effect is Effect.EXECUTE and not remote:
            text = str(args.get(tool.facts.target, ""))
            named = hosts_of_command(text) if tool.facts.target == "command" else hosts_of_code(text)
            hosts: Iterable[str] = named if held else (*named, *hosts_of(text), *hosts_of_inline_code(text))
        else:
            hosts = _hosts(tool.name, args, remote=remote)
        for host in hosts:
            if host not in _HERE and not self._named(host):
                return f"it contacts {host}, a host that you have not named, after data was read"
        return ""

    async def after(self, reply: Message, branch: Branch) -> None:
        """Do nothing: no picture or link in an answer is loaded automatically."""

    def reason(self, tool: Tool, args: Mapping[str, Any]) -> str:
        """Return why a call should ask even if rules allow it; empty if it should not."""
        if tool.effect not in {Effect.NETWORK, Effect.EXECUTE}:
            return ""
        if tool.name == "web_search":
            return _carried_words(tool.target(args))
        # A third-party tool may send any of its arguments.
        remote = tool.facts.category == "mcp"
        if remote and (secrets := find(" ".join(map(str, args.values())))):
            return f"the call gives {kinds_of(secrets)} to the MCP server {' '.join(tool.facts.tags)}"
        anything = tool.effect is Effect.NETWORK or remote
        values = map(str, args.values()) if anything else [str(args.get(tool.facts.target, ""))]
        for address in addresses(" ".join(values)):
            if why := self._about(address):
                return why
        return ""

    def _note(self, messages: Sequence[Message]) -> None:
        """Record how much was read, and whether it contained a secret."""
        # A summary replaces messages that may have contained data.
        self._touched = self._touched or any(
            message.origin == "compaction" or _holds_data(message, self._called) for message in messages
        )
        left = _READ
        for name, text in _read_in(messages, self._called):
            if name in WEB or (name == NOTED and len(text) < SHORT):
                continue
            self._read += len(text)
            # Reading more than LARGE characters has the same effect as a secret, so only a bounded part is searched.
            # It is searched in pieces, because a search blocks other threads.
            for start in range(0, 0 if self._secret else min(len(text), left), _PIECE - _OVERLAP):
                piece = text[start : start + _PIECE]
                if marks := placeholders(piece):
                    self._secret = marks[0].removeprefix("[secret: ").removesuffix("]")
                elif found := find(piece):
                    self._secret = found[0].kind
                if self._secret:
                    break
            left = max(0, left - len(text))

    def _about(self, address: str) -> str:
        try:
            parts = urlsplit(address)
            host = (parts.hostname or "").lower()
        except ValueError:
            return "its address can't be read"
        if not host or host in _HERE or self._named(host):
            return ""
        login = f"{parts.username or ''} {parts.password or ''}".strip()
        if what := self._carries(address, host, (parts.path, f"{login} {parts.query}#{parts.fragment}".strip())):
            return f"the address sends {what} to {host}, a host that you have not named"
        if self._secret:
            return f"it contacts {host}, a host that you have not named, after a secret was read ({self._secret})"
        if self._read > LARGE:
            return f"it contacts {host}, a host that you have not named, after {self._read:,} characters were read"
        return ""

    def _carries(self, address: str, host: str, payload: tuple[str, str]) -> str:
        path, query = map(unquote_plus, payload)
        if secrets := find(f"{path} {query}"):
            return kinds_of(secrets)
        if self._followed(address):
            return ""
        names = host.split(".")[:-2]
        if any(len(label) >= _LABEL and looks_drawn(label) for label in (*names, "".join(names))):
            return "something encoded"
        if any(map(_encoded, _BLOB.findall(f"{_COMMIT.sub('', path)} {query}".replace("/", " ")))):
            return "something encoded"
        if len(query) > _LONGEST:
            return f"{len(query)} characters"
        seen = [_tight(text) for name, text in self._results() if name not in WEB]
        earlier = " ".join(self._sent_to(host))
        pieces = [
            *((form, _QUERY) for text in (" ".join(names), query, _values(query), earlier) for form in _forms(text)),
            *((form, _PATH) for form in _forms(path)),
            *((_tight(text), _LEAST) for text in _decoded(f"{path} {query} {''.join(names)}")),
        ]
        return "data that was read in this session" if any(_stands(piece, run, seen) for piece, run in pieces) else ""

    def _sent_to(self, host: str) -> Iterator[str]:
        """Yield what earlier calls carried to a host, in order: a text may leave in pieces."""
        yield from self._sent.get(host, ())
        for name, transcript in tuple(self._transcripts.items()):
            noted = self._noted.get(name, ("", 0))[0]
            newest = [*takewhile(lambda message: message.id != noted, reversed(transcript.messages))]  # noqa: B023
            for message in reversed(newest):
                yield from (words for to, words in _sent(message) if to == host)

    def _named(self, host: str) -> bool:
        """Return whether the user's own words name the host or one of its parent domains.

        Naming a domain does not name its siblings, which often belong to other owners.
        """
        if host in self._agreed:
            return True
        labels = host.split(".")
        names = [".".join(labels[start:]) for start in range(max(1, len(labels) - 1))]
        name = re.compile(rf"(?<![\w.-])(?:www\.)?(?:{'|'.join(map(re.escape, names))})(?![\w-]|\.\w)")
        return any(name.search(words.lower()) for words in self._prompts())

    def _prompts(self) -> Iterator[str]:
        yield from tuple(self._words.values())

    def _followed(self, address: str) -> bool:
        """Return whether the complete address occurs in a file or page: following it reveals nothing new."""
        whole = re.compile(rf"{re.escape(address)}(?![\w/?&=%#-])")
        return any(whole.search(text) for name, text in self._results() if name in WRITTEN)

    def _results(self) -> Iterator[tuple[str, str]]:
        """Yield the newest results with their tools' names, up to ``_READ`` characters."""
        left = _READ
        for name, text in islice(self._all_results(), _RESULTS):
            yield name, text[:left]
            left -= len(text)
            if left <= 0:
                return

    def _all_results(self) -> Iterator[tuple[str, str]]:
        for transcript in tuple(self._transcripts.values()):
            newest = _called(transcript.messages[-2:])
            yield from _read_in(reversed(transcript.messages), ChainMap(dict(newest), self._called))


def _sent(message: Message) -> Iterator[tuple[str, str]]:
    """Yield hosts in addresses of the calls of ``message``, with the data that each address carries."""
    for call in message.calls:
        for address in addresses(" ".join(map(str, call.input.values()))):
            with suppress(ValueError):
                parts = urlsplit(address)
                yield (parts.hostname or "").lower(), f"{_values(unquote_plus(parts.query))} {unquote_plus(parts.path)}"


def _typed(message: Message) -> bool:
    return message.role == "user" and not message.hidden and message.origin in {"user", "steer"}


def _hosts(name: str, args: Mapping[str, Any], *, remote: bool) -> tuple[str, ...]:
    """Return the hosts in the arguments of a call."""
    command = str(args.get("command") or args.get("code") or "")
    if command:
        return (*hosts_of(command), *hosts_of_code(command))
    return tuple(hosts_of_values(args) if remote else hosts_of(" ".join(map(str, args.values()))))


def _holds_data(message: Message, called: Mapping[str, str]) -> bool:
    """Return whether a message contains data read here: a tool result, an attached file, an agent's report."""
    for block in message.blocks:
        if isinstance(block, ToolOutput):
            name = called.get(block.tool_use_id, "")
            if name not in OWN and name not in WEB and (block.error is None or block.error.kind not in _EMPTY):
                return True
        elif isinstance(block, Text) and message.role == "user" and _GIVEN.search(block.text[:_LONGEST]):
            return True
    return False


def _called(messages: Iterable[Message]) -> Mapping[str, str]:
    """Return tool names by call id."""
    return {call.id: call.name for message in messages for call in message.calls}


def _read_in(messages: Iterable[Message], called: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield results with their tools' names, and notes that accompany prompts, such as attached files."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolOutput) and called.get(block.tool_use_id) not in OWN:
                yield called.get(block.tool_use_id, ""), block.content
            elif isinstance(block, Text) and block.text.startswith(NOTE) and not _TOLD.search(block.text, 0, _LONGEST):
                yield NOTED, block.text


@lru_cache(maxsize=_RESULTS)
def _tight(text: str) -> str:
    """Return only the letters and digits, so that separators do not matter."""
    return text.lower().translate(_SIGNS)


def _forms(text: str) -> tuple[str, ...]:
    """Return ``text`` and its simplest disguises: reversed, in ROT13, and both."""
    plain = _tight(text)
    turned = plain.translate(_ROT13)
    return plain, plain[::-1], turned, turned[::-1]


def _values(query: str) -> str:
    """Return the field values of a query, without field names."""
    return " ".join(part.partition("=")[2] or part for part in query.split("&"))


def _stands(piece: str, run: int, seen: Sequence[str]) -> bool:
    """Return whether about ``run`` consecutive characters of ``piece`` occur in one of the texts."""
    if len(piece) < run:
        return False
    window = max(run - _STEP, _STEP)
    cuts = [piece[start : start + window] for start in range(0, len(piece) - window + 1, _STEP)][:_LONGEST]
    return any(cut in text for text in seen for cut in cuts)


def _carried_words(query: str) -> str:
    """Return why a search text asks; empty if it need not. The user chose the search engine."""
    if secrets := find(query):
        return f"the search text contains {kinds_of(secrets)}"
    return "the search text contains encoded data" if any(map(_encoded, _BLOB.findall(query))) else ""


def _encoded(blob: str) -> bool:
    """Return whether ``blob`` looks random and is not a title with dashes."""
    words = re.split("[-_]", blob)
    plain = sum(word.isalpha() or word.isdigit() for word in words)
    return looks_drawn(blob) and not (len(words) > 2 and plain >= len(words) * 0.8)


def _decoded(text: str) -> Iterator[str]:
    """Yield readable text decoded from short pieces of base64 or hexadecimal."""
    for piece in re.findall(r"[A-Za-z0-9+_-]{16,}={0,2}", text)[:20]:
        raw = b""
        try:
            raw = bytes.fromhex(piece)
        except ValueError:
            try:
                raw = base64.b64decode(
                    piece.replace("-", "+").replace("_", "/").rstrip("=") + "=" * (-len(piece.rstrip("=")) % 4)
                )
            except (binascii.Error, ValueError):
                continue
        if (words := raw.decode("utf-8", "replace")).isprintable() and "\ufffd" not in words:
            yield words
