"""Calls that carry data out: what was read here, a secret or something encoded, to a host that the user has not named.

What is disguised well enough looks like nothing. So in mode auto every such host is asked about once any data was read;
in other modes, where a rule of the user's lets a call go out, once something secret or large was read.
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
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from ba_tui.core.contents import weighty
from ba_tui.core.events import MAIN, Event, Judged, ToolStarted
from ba_tui.core.messages import NOTE, Message, Text, ToolOutput
from ba_tui.core.text.json_line import args_hash
from ba_tui.core.text.markup import INSTRUCTIONS, SKILL
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.permissions.egress.homographs import addresses
from ba_tui.permissions.egress.hosts import (
    hosts_of,
    hosts_of_code,
    hosts_of_command,
    hosts_of_inline_code,
    hosts_of_values,
)
from ba_tui.permissions.rules.rulebook import NETWORK
from ba_tui.permissions.secrets.scanner import find, looks_drawn, placeholders
from ba_tui.permissions.secrets.sharing import kinds_of

SEARCH = "web_search"
WEB = ("web_fetch", SEARCH, "extract_links")
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_EMPTY = frozenset({"permission_denied", "invalid_parameters", "not_found"})
"""Failures whose text is ba's own."""
_GIVEN = regex(rf"^{NOTE}\s(?:The person ran |[\s\S]*\bis data\b)")
"""Notes that hold attached files, results of commands that the user ran, or reports of agents."""
WRITTEN = (*WEB, "read_file", "grep", "read_artifact")
"""What stands in their results was not put together by the model: an address found there may be followed."""
_BLOB = regex(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_COMMIT = regex(r"(?<![^/])[0-9a-f]{40}(?![^/])")
_LABEL = 30
_QUERY, _PATH, _LEAST = 24, 40, 12
"""Characters in a row that were read before: so many are no coincidence."""
_LONGEST = 500
_STEP = 10
_SIGNS = str.maketrans(dict.fromkeys(string.punctuation + string.whitespace))
_ROT13 = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[13:] + string.ascii_lowercase[:13])
_READ = 2_000_000
_AT_ONCE = 32_000
"""Characters that are looked at on the loop."""
_PIECE, _OVERLAP = 32_000, 2_000
_RESULTS = 400
OWN = ("activate_skill", "tool_search", "ask_user", "todo_write", "todo_read", "now", "calculator")
"""What they give is no content of this machine."""
NOTED, SHORT = "note", 400
"""Notes come with prompts; short ones say the time and the like."""
_TOLD = regex(rf"<(?:{INSTRUCTIONS}|{SKILL}) ")
LARGE = 2_000
"""Characters of what lies on this machine that may be read before every host that nobody named is asked about."""


class Egress:
    """core.agent.Interceptor: knows what was said and read; ``reason`` is asked before a call goes out."""

    def __init__(self) -> None:
        self._transcripts: dict[str, Transcript] = {}
        self._noted: dict[str, tuple[str, int]] = {}
        """The last message of each branch that was looked at, and how many of its blocks."""
        self._called: dict[str, str] = {}
        """The names of tools by the ids of their calls."""
        self._sent: dict[str, list[str]] = {}
        """What calls carried in addresses, by their hosts; not those of the newest answer."""
        self._read = 0
        self._secret = ""
        """Which kind of secret was read, empty for none."""
        self._touched = False
        """Whether any data was read, by whichever agent."""
        self._words: dict[str, str] = {}
        """What the user typed, by the ids of messages: compaction takes those out of a transcript."""
        self._calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
        """Calls that run, with their tools' names, by their ids."""
        self._agreed: set[str] = set()
        """Hosts of calls that the user allowed."""
        self._searches = False
        """Whether the user allowed a search of the web."""

    async def before(self, branch: Branch) -> None:
        self._transcripts[branch.name] = branch.transcript
        messages, noted = branch.transcript.messages, self._noted.get(branch.name, ("", 0))
        news = takewhile(lambda message: message.id != noted[0], reversed(messages))
        if noted[0] and not weighty(chain(news, messages[-1:]), _AT_ONCE):
            self._take(branch, messages, noted)
        else:
            # A session that is continued: all of its history is new.
            await asyncio.to_thread(self._take, branch, messages, noted)

    def _take(self, branch: Branch, messages: Sequence[Message], noted: tuple[str, int]) -> None:
        """Look at what came after the block that is ``noted``. Takes time in proportion to it."""
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
        """Learn which calls the user allowed: their hosts are named from then on."""
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
        """Why a call of mode auto should be asked about: it contacts a host that the user has not named, after data was
        read. No disguise of the data matters then. ``held``: the network of what it runs is off but for hosts that are
        asked about."""
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
        """Nothing goes out with an answer: pictures and links in it are never followed by themselves."""

    def reason(self, tool: Tool, args: Mapping[str, Any]) -> str:
        """Why a call should be asked about whatever else allows it; empty when it should not."""
        if tool.effect not in {Effect.NETWORK, Effect.EXECUTE}:
            return ""
        if tool.name == "web_search":
            return _carried_words(tool.target(args))
        # A tool of somebody's own may send any of its arguments.
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
        """Remember how much was read, and whether a secret was among it."""
        # A summary stands for messages that may have held anything.
        self._touched = self._touched or any(
            message.origin == "compaction" or _holds_data(message, self._called) for message in messages
        )
        left = _READ
        for name, text in _read_in(messages, self._called):
            if name in WEB or (name == NOTED and len(text) < SHORT):
                continue
            self._read += len(text)
            # More than LARGE characters have the same effect as a secret: so much is searched as can be in no time, and
            # in pieces, because a search keeps other threads from running.
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
        """What earlier calls carried to a host, in their order: a text may go out in pieces."""
        yield from self._sent.get(host, ())
        for name, transcript in tuple(self._transcripts.items()):
            noted = self._noted.get(name, ("", 0))[0]
            newest = [*takewhile(lambda message: message.id != noted, reversed(transcript.messages))]  # noqa: B023
            for message in reversed(newest):
                yield from (words for to, words in _sent(message) if to == host)

    def _named(self, host: str) -> bool:
        """Whether the person's own words name the host, or a domain that it belongs to. Its neighbours below a domain
        are not named with it: many of those belong to anybody."""
        if host in self._agreed:
            return True
        labels = host.split(".")
        names = [".".join(labels[start:]) for start in range(max(1, len(labels) - 1))]
        name = re.compile(rf"(?<![\w.-])(?:www\.)?(?:{'|'.join(map(re.escape, names))})(?![\w-]|\.\w)")
        return any(name.search(words.lower()) for words in self._prompts())

    def _prompts(self) -> Iterator[str]:
        yield from tuple(self._words.values())

    def _followed(self, address: str) -> bool:
        """Whether the whole address stood in a file or a page: following it says no more than they did."""
        whole = re.compile(rf"{re.escape(address)}(?![\w/?&=%#-])")
        return any(whole.search(text) for name, text in self._results() if name in WRITTEN)

    def _results(self) -> Iterator[tuple[str, str]]:
        """The newest results with the names of their tools, so much as can be gone through in no time."""
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
    """The hosts in addresses of the calls of ``message``, with what the addresses carry."""
    for call in message.calls:
        for address in addresses(" ".join(map(str, call.input.values()))):
            with suppress(ValueError):
                parts = urlsplit(address)
                yield (parts.hostname or "").lower(), f"{_values(unquote_plus(parts.query))} {unquote_plus(parts.path)}"


def _typed(message: Message) -> bool:
    return message.role == "user" and not message.hidden and message.origin in {"user", "steer"}


def _hosts(name: str, args: Mapping[str, Any], *, remote: bool) -> tuple[str, ...]:
    """The hosts in the arguments of a call."""
    command = str(args.get("command") or args.get("code") or "")
    if command:
        return (*hosts_of(command), *hosts_of_code(command))
    return tuple(hosts_of_values(args) if remote else hosts_of(" ".join(map(str, args.values()))))


def _holds_data(message: Message, called: Mapping[str, str]) -> bool:
    """Whether a message holds what was read here: a result of a tool, an attached file, a report of an agent."""
    for block in message.blocks:
        if isinstance(block, ToolOutput):
            name = called.get(block.tool_use_id, "")
            if name not in OWN and name not in WEB and (block.error is None or block.error.kind not in _EMPTY):
                return True
        elif isinstance(block, Text) and message.role == "user" and _GIVEN.search(block.text[:_LONGEST]):
            return True
    return False


def _called(messages: Iterable[Message]) -> Mapping[str, str]:
    """The names of tools by the ids of their calls."""
    return {call.id: call.name for message in messages for call in message.calls}


def _read_in(messages: Iterable[Message], called: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Results with the names of their tools, and what came with prompts: attached files, notes of what was said."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolOutput) and called.get(block.tool_use_id) not in OWN:
                yield called.get(block.tool_use_id, ""), block.content
            elif isinstance(block, Text) and block.text.startswith(NOTE) and not _TOLD.search(block.text, 0, _LONGEST):
                yield NOTED, block.text


@lru_cache(maxsize=_RESULTS)
def _tight(text: str) -> str:
    """The letters and numbers alone, so that it does not matter how they were parted."""
    return text.lower().translate(_SIGNS)


def _forms(text: str) -> tuple[str, ...]:
    """``text`` as it is, and as it is most easily disguised."""
    plain = _tight(text)
    turned = plain.translate(_ROT13)
    return plain, plain[::-1], turned, turned[::-1]


def _values(query: str) -> str:
    """What stands in the fields of a query, without their names."""
    return " ".join(part.partition("=")[2] or part for part in query.split("&"))


def _stands(piece: str, run: int, seen: Sequence[str]) -> bool:
    """Whether about ``run`` characters in a row of ``piece`` stand in one of the texts."""
    if len(piece) < run:
        return False
    window = max(run - _STEP, _STEP)
    cuts = [piece[start : start + window] for start in range(0, len(piece) - window + 1, _STEP)][:_LONGEST]
    return any(cut in text for text in seen for cut in cuts)


def _carried_words(query: str) -> str:
    """Words that go to the search engine, which the person chose."""
    if secrets := find(query):
        return f"the search text holds {kinds_of(secrets)}"
    return "the search text holds encoded data" if any(map(_encoded, _BLOB.findall(query))) else ""


def _encoded(blob: str) -> bool:
    """Whether it looks drawn by a machine and is no title with dashes between its words."""
    words = re.split("[-_]", blob)
    plain = sum(word.isalpha() or word.isdigit() for word in words)
    return looks_drawn(blob) and not (len(words) > 2 and plain >= len(words) * 0.8)


def _decoded(text: str) -> Iterator[str]:
    """What short pieces in base64 or hexadecimal say, when they say something."""
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
