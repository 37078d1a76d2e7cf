"""Addresses that carry data out: what was read here, a secret or something encoded, to a host that nobody named.

What is disguised well enough looks like nothing. So once something secret or large was read, every such host is asked
about. Which hosts may be asked without a word otherwise is decided by rules and modes.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from ba_tui.core.messages import NOTE, Message, Text, ToolOutput
from ba_tui.core.text.markup import INSTRUCTIONS, SKILL
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.permissions.egress.homographs import addresses
from ba_tui.permissions.secrets.scanner import find, looks_drawn, placeholders
from ba_tui.permissions.secrets.sharing import kinds_of

WEB = ("web_fetch", "web_search", "extract_links")
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
        self._read = 0
        self._secret = ""
        """Which kind of secret was read, empty for none."""

    async def before(self, branch: Branch) -> None:
        self._transcripts[branch.name] = branch.transcript
        messages, (last, count) = branch.transcript.messages, self._noted.get(branch.name, ("", 0))
        new: list[Message] = []
        for message in reversed(messages):
            if message.id == last:
                new.append(replace(message, blocks=message.blocks[count:]))
                break
            new.append(message)
        if messages:
            self._noted[branch.name] = messages[-1].id, len(messages[-1].blocks)
        self._called.update(_called(new))
        self._note(new)

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
        for name, text in _read_in(messages, self._called):
            if name in WEB or (name == NOTED and len(text) < SHORT):
                continue
            self._read += len(text)
            if not self._secret and (marks := placeholders(text)):
                self._secret = marks[0].removeprefix("[secret: ").removesuffix("]")
            elif not self._secret and (found := find(text)):
                self._secret = found[0].kind

    def _about(self, address: str) -> str:
        try:
            parts = urlsplit(address)
            host = (parts.hostname or "").lower()
        except ValueError:
            return "its address can't be read"
        if not host or host in {"localhost", "127.0.0.1", "::1"} or self._named(host):
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
        for transcript in tuple(self._transcripts.values()):
            for message in transcript.messages:
                for call in message.calls:
                    for address in addresses(" ".join(map(str, call.input.values()))):
                        parts = urlsplit(address)
                        if (parts.hostname or "").lower() == host:
                            yield f"{_values(unquote_plus(parts.query))} {unquote_plus(parts.path)}"

    def _named(self, host: str) -> bool:
        """Whether the person's own words name the host, or a domain that it belongs to. Its neighbours below a domain
        are not named with it: many of those belong to anybody."""
        labels = host.split(".")
        names = [".".join(labels[start:]) for start in range(max(1, len(labels) - 1))]
        name = re.compile(rf"(?<![\w.-])(?:www\.)?(?:{'|'.join(map(re.escape, names))})(?![\w-]|\.\w)")
        return any(name.search(words.lower()) for words in self._prompts())

    def _prompts(self) -> Iterator[str]:
        for transcript in tuple(self._transcripts.values()):
            if transcript.agent != "main":
                continue
            for message in transcript.messages:
                if message.role == "user" and not message.hidden and message.origin in {"user", "steer"}:
                    yield message.own_text

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
            yield from _read_in(reversed(transcript.messages), _called(transcript.messages))


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
