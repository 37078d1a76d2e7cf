"""Addresses that carry data out: what was read here, a secret or something encoded, to a host that nobody named.

Which hosts may be asked without a word otherwise is decided by rules and modes.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from ba_tui.core.messages import Message, ToolOutput, ToolUse
from ba_tui.core.patterns import regex
from ba_tui.core.tool import Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.permissions.lookalikes import addresses
from ba_tui.permissions.secrets import find, looks_drawn
from ba_tui.permissions.sharing import kinds_of

WEB = ("web_fetch", "web_search", "extract_links")
WRITTEN = (*WEB, "read_file", "grep", "read_artifact")
"""What stands in their results was not put together by the model: an address found there may be followed."""
_BLOB = regex(r"[A-Za-z0-9+/_-]{40,}={0,2}")
_COMMIT = regex(r"(?<![^/])[0-9a-f]{40}(?![^/])")
_LABEL = 30
_QUERY, _PATH = 24, 40
"""Characters in a row that were read before: so many are no coincidence."""
_LONGEST = 500
_STEP = 10
_SIGNS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_READ = 2_000_000
_RESULTS = 400


class Egress:
    """core.agent.Interceptor: knows what was said and read; ``reason`` is asked before a call goes out."""

    def __init__(self) -> None:
        self._transcripts: dict[str, Transcript] = {}

    async def before(self, branch: Branch) -> None:
        self._transcripts[branch.name] = branch.transcript

    async def after(self, reply: Message, branch: Branch) -> None:
        """Nothing goes out with an answer: pictures and links in it are never followed by themselves."""

    def reason(self, tool: Tool, args: Mapping[str, Any]) -> str:
        """Why a call should be asked about whatever else allows it; empty when it should not."""
        if tool.effect not in {Effect.NETWORK, Effect.EXECUTE}:
            return ""
        text = tool.target(args) if tool.effect is Effect.NETWORK else str(args.get(tool.facts.target, ""))
        if tool.name == "web_search":
            return _carried_words(text)
        for address in addresses(text):
            if why := self._about(address):
                return why
        return ""

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
            return f"the address carries {what} to {host}, which you have not named"
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
        pieces = [*_decoded(f"{path} {query} {''.join(names)}")]
        if (
            self._was_read(" ".join(names), _QUERY)
            or self._was_read(query, _QUERY)
            or self._was_read(path, _PATH)
            or any(self._was_read(p, 12) for p in pieces)
        ):
            return "what was read here before"
        return ""

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
                    yield message.text

    def _followed(self, address: str) -> bool:
        """Whether the whole address stood in a file or a page: following it says no more than they did."""
        whole = re.compile(rf"{re.escape(address)}(?![\w/?&=%#-])")
        return any(whole.search(text) for name, text in self._results() if name in WRITTEN)

    def _was_read(self, piece: str, run: int) -> bool:
        """Whether about ``run`` characters in a row of ``piece`` stand in something that was read from here."""
        piece = _bare(piece)
        if len(piece) < run:
            return False
        window = max(run - _STEP, _STEP)
        cuts = [piece[start : start + window] for start in range(0, len(piece) - window + 1, _STEP)][:_LONGEST]
        seen = (_bare(text) for name, text in self._results() if name not in WEB)
        return any(cut in text for text in seen for cut in cuts)

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
            messages = transcript.messages
            names = {
                block.id: block.name for message in messages for block in message.blocks if isinstance(block, ToolUse)
            }
            for message in reversed(messages):
                for block in message.blocks:
                    if isinstance(block, ToolOutput):
                        yield names.get(block.tool_use_id, ""), block.content


def _bare(text: str) -> str:
    """The letters and numbers, with one space between words however they were parted."""
    return " ".join(text.lower().translate(_SIGNS).split())


def _carried_words(query: str) -> str:
    """Words that go to the search engine, which the person chose."""
    if secrets := find(query):
        return f"the search carries {kinds_of(secrets)}"
    return "the search carries something encoded" if any(map(_encoded, _BLOB.findall(query))) else ""


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
