"""Resources and prompts of servers: users name resources as ``@server:uri``, and prompts as ``/server:name``."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterator, Sequence

from ba_tui.context.ports import MentionedData
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.context import CommandLine, Suggestion
from ba_tui.core.ports.mcp import RemotePrompt, RemoteResource
from ba_tui.core.provider import Modalities
from ba_tui.core.results import ToolResult
from ba_tui.core.text.wording import one_line
from ba_tui.features.mcp.client.server import Server, Servers
from ba_tui.features.mcp.remote_tools import read_parts
from ba_tui.tools.formats import head_and_tail

RESOURCE_CHARS = 60_000
"""Maximum characters of a resource that a prompt mentions; a tool of the server reads the rest."""
DETAIL = 60


class MentionedResources:
    """context.ports.MentionedData: resources of servers, and all that ``data`` knows."""

    def __init__(self, data: Callable[[], MentionedData], servers: Servers, modalities: Modalities) -> None:
        self._data, self._servers, self._modalities = data, servers, modalities

    def remote(self, text: str) -> bool:
        """See MentionedData."""
        return self._found(text) is not None

    async def names(self, text: str) -> bool:
        """See MentionedData."""
        return await self._data().names(text)

    async def names_files(self, text: str) -> bool:
        """See MentionedData."""
        return await self._data().names_files(text)

    async def register(self, text: str) -> ToolResult:
        """See MentionedData."""
        return await self._data().register(text)

    async def read(self, text: str) -> ToolResult:
        """See MentionedData. Raises McpError."""
        found = self._found(text)
        if found is None:
            return await self._data().read(text)
        server, uri = found
        answer = await server.read(uri)
        whole, pictures = await asyncio.to_thread(read_parts, answer, self._modalities)
        return ToolResult(head_and_tail(whole, RESOURCE_CHARS), summary="a resource", attachments=tuple(pictures))

    def suggestions(self) -> Sequence[Suggestion]:
        """Return completions, without asking the servers."""
        return [
            Suggestion("resource", f"{name}:{each.uri}", f"{name}:{each.uri}", one_line(each.name, DETAIL))
            for name, server in _usable(self._servers)
            for each in server.state().resources
            if not each.template
        ]

    def _found(self, text: str) -> tuple[Server, str] | None:
        """Return the server and the address that ``text`` names."""
        name, colon, uri = text.partition(":")
        server = dict(_usable(self._servers)).get(name)
        if not colon or not uri or server is None:
            return None
        return (server, uri) if any(_meant(each, uri) for each in server.state().resources) else None


class RemotePrompts:
    """context.ports.ServerPrompts: the prompts that servers offer."""

    def __init__(self, servers: Servers, modalities: Modalities) -> None:
        self._servers, self._modalities = servers, modalities

    def lines(self) -> Sequence[CommandLine]:
        """Return a line for each prompt, without asking the servers."""
        return [
            CommandLine(f"{name}:{each.name}", "server", each.description, _hint(each), f"MCP server {name}")
            for name, server in _usable(self._servers)
            for each in server.state().prompts
        ]

    def has(self, name: str) -> bool:
        """Return whether a server offers the prompt with that name."""
        return self._found(name) is not None

    async def text(self, name: str, arguments: str) -> str:
        """Return the text of a prompt with its arguments filled in. Raises UsageError, McpError."""
        found = self._found(name)
        if found is None:
            raise UsageError(f"There is no prompt {name!r}.", "See /mcp.")
        server, prompt = found
        answer = await server.prompt(prompt.name, _given(prompt, arguments))
        several = len({part.speaker for part in answer.parts}) > 1
        said: list[str] = []
        for part in answer.parts:
            text, _ = read_parts(type(answer)((part,)), self._modalities)
            said.append(f"{part.speaker}: {text}" if several else text)
        return "\n\n".join(said)

    def _found(self, name: str) -> tuple[Server, RemotePrompt] | None:
        head, colon, rest = name.partition(":")
        server = dict(_usable(self._servers)).get(head) if colon else None
        prompts = server.state().prompts if server else ()
        return next(((server, each) for each in prompts if server and each.name == rest), None)


def _usable(servers: Servers) -> Iterator[tuple[str, Server]]:
    """Return the usable servers by their prefixes."""
    return ((server.part, server) for server in servers.each.values() if server.usable)


def _meant(resource: RemoteResource, uri: str) -> bool:
    if not resource.template:
        return resource.uri == uri
    fixed = resource.uri.partition("{")[0]
    return len(fixed) > 1 and uri.startswith(fixed) and len(uri) > len(fixed)


def _hint(prompt: RemotePrompt) -> str:
    return " ".join(each.name if each.required else f"[{each.name}]" for each in prompt.arguments)


def _given(prompt: RemotePrompt, text: str) -> dict[str, str]:
    """Return the arguments in ``text``: ``name=value`` or positional; the last one takes the rest."""
    names = [each.name for each in prompt.arguments]
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"The arguments can't be read: {error}.", f"Write: {_hint(prompt)}") from error
    values: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            values[name] = value
        else:
            plain.append(word)
    left = [name for name in names if name not in values]
    if len(plain) > len(left):
        plain = [*plain[: len(left) - 1], " ".join(plain[len(left) - 1 :])] if left else []
    values |= dict(zip(left, plain, strict=False))
    if missing := [each.name for each in prompt.arguments if each.required and each.name not in values]:
        raise UsageError(f"It needs {', '.join(missing)}.", f"Write: {_hint(prompt)}")
    return values
