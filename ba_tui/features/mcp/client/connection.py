"""One live connection to a server: opened, queried, watched, closed. A task of its own owns it.

``server`` decides when to connect, and what to do after a failure.
"""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client import Client, InputRequiredRoundsExceededError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ba_tui import __version__
from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import LoginNeeded, McpError, PromptArgument, RemotePrompt, RemoteResource, ServerConfig
from ba_tui.core.text.untrusted import hidden_in, paintable
from ba_tui.core.text.wording import count, one_line, sentence
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.features.mcp.client.definitions import plain_text
from ba_tui.features.mcp.client.host import ServerHost
from ba_tui.features.mcp.client.incoming import ServerMessages
from ba_tui.features.mcp.client.requests import ServerRequests
from ba_tui.features.mcp.client.transports import SseClient, WatchedTransport, over_http, stdio
from ba_tui.features.mcp.client.values import RemotePart, RemoteResult, ServerLog, ServerOffer


@frozen
class Seen:
    """What is known of the server ``name``: the ``status`` of its newest response (0: none), and why it ended."""

    name: str
    status: int = 0
    why: str = ""


def failure(error: BaseException, seen: Seen, what: str = "") -> BaError:
    """Return ``error`` as an error of ours: what happened, and what to do. ``what`` failed; empty for the connection
    itself."""
    error = _innermost(error)
    if isinstance(error, BaError):
        return error
    if seen.status == 401:
        fix = f"Log in: ba mcp login {seen.name}, or /mcp."
        return LoginNeeded(f"The MCP server {seen.name} wants you to log in.", fix)
    if seen.status in {403, 404, 405} and not what:
        words = {403: "refuses access (403)", 404: "has no MCP endpoint at this address (404)"}
        text = words.get(seen.status, f"refuses requests of this kind ({seen.status})")
        return McpError(f"The server {text}.", f"Check its address and headers: ba mcp get {seen.name}.")
    why = one_line(paintable(_words(error, seen), newlines=False), TEXT_CHARS)
    return McpError(sentence(f"{what[:1].upper()}{what[1:]} failed: {why}" if what else why), hint(seen.name))


def hint(name: str) -> str:
    """Return the hint where to find the server's output."""
    return f"See what it printed: /mcp, or ba mcp test {name}."


def _words(error: BaseException, seen: Seen) -> str:
    match error:
        case MCPError():
            gone = error.code == types.CONNECTION_CLOSED and seen.why
            return seen.why if gone else error.message
        case InputRequiredRoundsExceededError():
            return "It asked for more and more input."
        case ValidationError():
            return "It answered with something that the protocol does not allow."
        case OSError() | httpx2.HTTPError():
            return _network_words(error)
        case _:
            return str(error) or type(error).__name__


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((each for each in inner if not isinstance(each, asyncio.CancelledError)), inner[0])
    return error


def _network_words(error: OSError | httpx2.HTTPError) -> str:
    causes: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and len(causes) < 20:
        causes.append(at)
        at = at.__cause__ or at.__context__
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return "The address refuses connections"
    if isinstance(error, httpx2.TimeoutException):
        return "It did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or "The connection broke off"


# Conversion of the SDK's types to ours.


def part(block: types.ContentBlock) -> RemotePart:
    """Return one content block of a result."""
    match block:
        case types.TextContent(text=text):
            return RemotePart("text", text)
        case types.ImageContent(data=data, mime_type=kind):
            return RemotePart("image", data=data, media_type=kind)
        case types.AudioContent(data=data, mime_type=kind):
            return RemotePart("audio", data=data, media_type=kind)
        case types.EmbeddedResource(resource=resource):
            return contents(resource)
        case types.ResourceLink(uri=uri, name=name, description=about, mime_type=kind):
            text = f"{name}: {about}" if about else name
            return RemotePart("link", text, media_type=kind or "", uri=str(uri))


def contents(resource: types.TextResourceContents | types.BlobResourceContents) -> RemotePart:
    """Return the contents of a resource."""
    kind, uri = resource.mime_type or "", str(resource.uri)
    if isinstance(resource, types.TextResourceContents):
        return RemotePart("resource", resource.text, media_type=kind, uri=uri)
    return RemotePart("resource", data=resource.blob, media_type=kind, uri=uri)


def spoken(message: types.PromptMessage) -> RemotePart:
    """Return a message of a prompt, with its speaker."""
    return replace(part(message.content), speaker=message.role)


def _line(text: str | None) -> str:
    return one_line(plain_text(text or "", TEXT_CHARS)[0], TEXT_CHARS)


def resource(each: types.Resource) -> RemoteResource:
    """Return a resource of a listing."""
    name, about = _line(each.title or each.name), _line(each.description)
    return RemoteResource(str(each.uri), name, about, each.mime_type or "", each.size)


def template(each: types.ResourceTemplate) -> RemoteResource:
    """Return a resource template of a listing."""
    name, about = _line(each.title or each.name), _line(each.description)
    return RemoteResource(each.uri_template, name, about, each.mime_type or "", template=True)


def prompt(each: types.Prompt) -> RemotePrompt:
    """Return a prompt of a listing."""
    args: Sequence[types.PromptArgument] = each.arguments or ()
    named = tuple(PromptArgument(arg.name, _line(arg.description), bool(arg.required)) for arg in args)
    return RemotePrompt(each.name, _line(each.description or each.title), named)


Mode: TypeAlias = Literal["auto", "legacy"]
ME = types.Implementation(name="ba", title="ba", version=__version__)
PAGES = 50
"""Maximum pages of a listing."""
MOST_OFFERED = 1_000
REPORTS_A_SECOND = 5
QUIET_SECONDS = 5.0
"""Seconds before a lost subscription is made again."""
TEXT_CHARS = 300
PROBE_SECONDS, SHORT_PROBE_SECONDS = 10.0, 0.5
"""Timeouts of the newest protocol's probe, which servers of older protocols may leave unanswered: for a new server, and
for one that used an older protocol last time. At most a third of the connection timeout.
"""
UNFINISHED_SECONDS = 5.0
"""Timeout for the rest of a partial answer in seconds; at most a quarter of the call timeout."""


class Connection:
    """A connection. ``ended`` is called with the reason when the server ends it; ``changed`` when the server reports
    changed offers."""

    def __init__(
        self,
        config: ServerConfig,
        host: ServerHost,
        log: ServerLog,
        ended: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self._config, self._host, self._log = config, host, log
        self._on_end, self._changed = ended, changed
        self.requests = ServerRequests(config.name, host.roots, host.sample if config.sampling else None)
        self._incoming = ServerMessages(log, PROBE_SECONDS)
        self._watched: WatchedTransport | None = None
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._connecting: asyncio.Timeout | None = None
        self._why, self._slow = "", False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def died(self) -> bool:
        """Return whether a program was started for it that has ended by now."""
        return bool(self._why) and not self._slow

    @property
    def title(self) -> str:
        """Return the server's own name and version."""
        info = self._live.server_info
        return one_line(paintable(f"{info.title or info.name} {info.version}", newlines=False), 80) if info else ""

    @property
    def protocol(self) -> str:
        return self._live.protocol_version

    @property
    def instructions(self) -> str:
        return self._live.instructions or ""

    async def open(self, mode: Mode = "auto", spoken: str = "") -> None:
        """Connect. ``spoken``: the protocol version of the last connection. Raises McpError, LoginNeeded."""
        seconds = SHORT_PROBE_SECONDS if spoken in HANDSHAKE_PROTOCOL_VERSIONS else PROBE_SECONDS
        self._incoming = ServerMessages(self._log, min(seconds, self._config.connect_timeout / 3))
        # This transport is older than the newest protocol, so its servers need no probe.
        mode = "legacy" if self._config.transport == "sse" else mode
        self._stop, self._why, self._slow, self._tasks = asyncio.Event(), "", False, []
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._hold(mode, opened))
        self._tasks.append(task)
        try:
            await opened
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise
        if self.protocol in MODERN_PROTOCOL_VERSIONS:
            self._tasks.append(asyncio.create_task(self._listen()))

    async def close(self) -> None:
        """End the connection, and the program that was started for it."""
        self._stop.set()
        for task in self._tasks[1:]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Requests

    async def offered(self) -> ServerOffer:
        """Return what the server offers. Raises McpError if its tools can't be listed."""
        can, notes = self._live.server_capabilities, list[str]()
        self._incoming.left_out.clear()
        tools: tuple[Mapping[str, Any], ...] = ()
        if can.tools is not None:
            listed = await self._pages(lambda cursor: self._live.list_tools(cursor=cursor), "tools")
            tools = tuple(tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed)
        resources: list[RemoteResource] = []
        prompts: list[RemotePrompt] = []
        if can.resources is not None:
            with _ListingNotes(notes, "resources"):
                found = await self._pages(lambda cursor: self._live.list_resources(cursor=cursor), "resources")
                resources += [resource(each) for each in found]
            with _ListingNotes(notes, "resource templates"):
                more = await self._pages(
                    lambda cursor: self._live.list_resource_templates(cursor=cursor), "resource_templates"
                )
                resources += [template(each) for each in more]
        if can.prompts is not None:
            with _ListingNotes(notes, "prompts"):
                listed = await self._pages(lambda cursor: self._live.list_prompts(cursor=cursor), "prompts")
                prompts += [prompt(each) for each in listed]
        addresses = [each for each in resources if not hidden_in(each.uri)]
        named = [each for each in prompts if not hidden_in("".join([each.name, *(arg.name for arg in each.arguments)]))]
        if left := len(resources) + len(prompts) - len(addresses) - len(named):
            notes.append(f"{count(left, 'entry')} of its resources and prompts left out: names with hidden characters")
        return ServerOffer(
            tools,
            tuple(addresses[:MOST_OFFERED]),
            tuple(named[:MOST_OFFERED]),
            tuple(notes),
            tuple(self._incoming.left_out),
        )

    async def call(self, tool: str, args: Mapping[str, Any], call: Call) -> RemoteResult:
        """Call a tool. Raises McpError."""
        report = _ProgressReports(call)
        with self.requests.during(call):
            asked = self._live.call_tool(tool, dict(args), progress_callback=report)
            result = await self._answer(asked, f"the call of {tool}")
        parts = tuple(map(part, result.content))
        return RemoteResult(parts, result.structured_content, bool(result.is_error))

    async def read(self, uri: str, call: Call | None = None) -> RemoteResult:
        """Read a resource. Raises McpError."""
        with self.requests.during(call):
            result = await self._answer(self._live.read_resource(uri), f"reading {one_line(uri, 80)}")
        return RemoteResult(tuple(contents(each) for each in result.contents))

    async def prompt(self, name: str, args: Mapping[str, str], call: Call | None = None) -> RemoteResult:
        """Get a prompt, filled in with ``args``. Raises McpError."""
        with self.requests.during(call):
            result = await self._answer(self._live.get_prompt(name, dict(args)), f"the prompt {name}")
        return RemoteResult(tuple(spoken(message) for message in result.messages))

    # Lifetime

    @property
    def _live(self) -> Client:
        if self._client is None:
            raise McpError(f"The MCP server {self._config.name} is not connected.")
        return self._client

    async def _hold(self, mode: Mode, opened: asyncio.Future[None]) -> None:
        """Keep the connection open until it is stopped or breaks."""
        why = ""
        try:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(self._config.connect_timeout) as self._connecting:
                        client = await self._connected(stack, mode)
                except TimeoutError:
                    if self._why and self._config.transport == "sse":
                        raise self._failure(RuntimeError(self._why)) from None
                    seconds = self._config.connect_timeout
                    self._slow = True
                    raise McpError(f"It did not answer within {seconds:g} s.", hint(self._config.name)) from None
                self._client = client
                if not opened.done():
                    opened.set_result(None)
                await self._stop.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a server does ends its connection and nothing else
            failed = self._failure(error)
            why = str(failed)
            if not opened.done():
                opened.set_exception(failed)
        finally:
            self._client = None
            if not opened.done():
                opened.set_exception(self._failure(McpError("It closed the connection.")))
        if not self._why:
            self._on_end(why)

    async def _connected(self, stack: AsyncExitStack, mode: Mode) -> Client:
        client = Client(
            self._transport(),  # pyright: ignore[reportArgumentType]
            mode=mode,
            client_info=ME,
            cache=None,
            log_level="info",
            elicitation_callback=self.requests.elicit,
            sampling_callback=self.requests.sample if self._config.sampling and self._host.sample else None,
            list_roots_callback=self.requests.roots,
            logging_callback=self._logged,
            message_handler=self._heard,
        )
        return await stack.enter_async_context(client)

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        config = self._config
        if config.transport == "stdio":
            program = await self._host.program(config, self.requests.current)
            patience = min(UNFINISHED_SECONDS, config.call_timeout / 4)
            async with stdio(program, self._incoming, patience, self._ended) as streams:
                yield streams
            return
        one_stream = config.transport == "sse"
        self._watched = WatchedTransport(await self._host.http(config), self._incoming, one_stream=one_stream)
        options: dict[str, Any] = {
            "transport": self._watched,
            "headers": {"User-Agent": f"ba/{__version__}", **config.headers},
            "auth": await self._host.auth(config),
            "timeout": httpx2.Timeout(30.0, read=300.0),
            "trust_env": False,
        }
        client = SseClient(self._ended, **options) if one_stream else httpx2.AsyncClient(**options)
        async with over_http(config, client, self._incoming, self._ended) as streams:
            yield streams

    def _ended(self, why: str) -> None:
        """Report the end of its program before the waiting calls fail."""
        self._why = why
        self._on_end(why)
        self._stop.set()
        if self._config.transport == "sse" and self._connecting:
            # The SDK would wait on. The timeout raises RuntimeError when its block was left.
            with suppress(RuntimeError):
                self._connecting.reschedule(0)

    async def _listen(self) -> None:
        """Receive change notifications of the newest protocol; older servers send them unasked."""
        can = self._live.server_capabilities
        while not self._stop.is_set():
            try:
                async with self._live.listen(
                    tools_list_changed=bool(can.tools and can.tools.list_changed),
                    prompts_list_changed=bool(can.prompts and can.prompts.list_changed),
                    resources_list_changed=bool(can.resources and can.resources.list_changed),
                ) as events:
                    async for _ in events:
                        self._changed()
                    return
            except SubscriptionLost:
                await asyncio.sleep(QUIET_SECONDS)
                self._changed()
            except (MCPError, McpError, TimeoutError, RuntimeError):
                # The server sends no notifications; reconnecting lists everything again.
                return

    async def _heard(self, message: types.ServerNotification | Exception) -> None:
        match message:
            case (
                types.ToolListChangedNotification()
                | types.PromptListChangedNotification()
                | types.ResourceListChangedNotification()
            ):
                self._changed()
            case Exception():
                self._log.add(f"ba: {one_line(str(message), TEXT_CHARS)}")
            case _:
                pass

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else repr(params.data)
        self._log.add(f"{params.level}: {said[:TEXT_CHARS]}")

    # Error messages

    async def _answer(self, asked: Awaitable[Any], what: str) -> Any:
        try:
            return await asked
        except (MCPError, ValidationError, RuntimeError, OSError, httpx2.HTTPError, BaseExceptionGroup) as error:
            raise self._failure(error, what) from error

    async def _pages(self, page: Callable[[str | None], Awaitable[Any]], key: str) -> list[Any]:
        found: list[Any] = []
        cursor: str | None = None
        what = key.replace("_", " ")
        for _ in range(PAGES):
            try:
                async with asyncio.timeout(self._config.connect_timeout):
                    answer = await self._answer(page(cursor), f"listing its {what}")
            except TimeoutError:
                seconds = self._config.connect_timeout
                raise McpError(f"It did not list its {what} within {seconds:g} s.", hint(self._config.name)) from None
            found += getattr(answer, key)
            before, cursor = cursor, answer.next_cursor
            if cursor is None or cursor == before or len(found) > 2 * MOST_OFFERED:
                break
        return found

    def _failure(self, error: BaseException, what: str = "") -> BaError:
        seen = Seen(self._config.name, self._watched.status if self._watched else 0, self._why)
        return failure(error, seen, what)


class _ProgressReports:
    """Shows the progress of a call, a few times a second."""

    def __init__(self, call: Call) -> None:
        self._call, self._last = call, 0.0

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = time.monotonic()
        if now - self._last < 1 / REPORTS_A_SECOND and progress != total:
            return
        self._last = now
        part = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        said = one_line(paintable(message or "", newlines=False), TEXT_CHARS)
        self._call.report(f"{said} ({part})\n" if said else f"{part}\n")


class _ListingNotes:
    """Records the failure of a listing that is not needed for tools."""

    def __init__(self, notes: list[str], what: str) -> None:
        self._notes, self._what = notes, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, McpError):
            return False
        self._notes.append(f"its {self._what} can't be listed: {one_line(str(error), 160)}")
        return True
