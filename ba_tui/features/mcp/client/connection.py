"""One live connection to a server: opened, asked, listened to, closed. A task of its own holds it.

When to connect, and what to do after a failure, is decided in ``servers``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias

import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client import Client
from mcp.client.subscriptions import SubscriptionLost
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ba_tui import __version__
from ba_tui.core.errors import BaError
from ba_tui.core.ports.mcp import McpError, RemotePrompt, RemoteResource, ServerConfig
from ba_tui.core.text.untrusted import hidden_in, paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call
from ba_tui.features.mcp.client.contents import contents, part, prompt, resource, spoken, template
from ba_tui.features.mcp.client.failures import Seen, failure, hint
from ba_tui.features.mcp.client.incoming import ServerMessages
from ba_tui.features.mcp.client.limits import ServerLog
from ba_tui.features.mcp.client.requests import ServerRequests
from ba_tui.features.mcp.client.transports import SseClient, Watched, over_http, stdio
from ba_tui.features.mcp.client.values import Offered, RemoteResult, ServerMeans

Mode: TypeAlias = Literal["auto", "legacy"]
ME = types.Implementation(name="ba", title="ba", version=__version__)
PAGES = 50
"""Pages of a listing that are read."""
MOST_OFFERED = 1_000
REPORTS_A_SECOND = 5
QUIET_SECONDS = 5.0
"""Before a subscription that was lost is made again."""
TEXT_CHARS = 300
PROBE_SECONDS, SHORT_PROBE_SECONDS = 10.0, 0.5
"""For the question of the newest protocol, which servers of older ones may leave without an answer: for a new server,
and for one that spoke an older protocol the last time. At most a third of the time for connecting."""
UNFINISHED_SECONDS = 5.0
"""After half an answer; at most a quarter of the time for a call."""


class Connection:
    """``ended`` is told why when the server ends it; ``changed`` when the server says that it offers something else."""

    def __init__(
        self,
        config: ServerConfig,
        means: ServerMeans,
        log: ServerLog,
        ended: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self._config, self._means, self._log = config, means, log
        self._on_end, self._changed = ended, changed
        self.requests = ServerRequests(config.name, means.roots, means.sample if config.sampling else None)
        self._incoming = ServerMessages(log, PROBE_SECONDS)
        self._watched: Watched | None = None
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._connecting: asyncio.Timeout | None = None
        self._why, self._slow = "", False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def died(self) -> bool:
        """Whether a program of its own was started, which has ended by now."""
        return bool(self._why) and not self._slow

    @property
    def title(self) -> str:
        """Its own name and version."""
        info = self._live.server_info
        return one_line(paintable(f"{info.title or info.name} {info.version}", newlines=False), 80) if info else ""

    @property
    def protocol(self) -> str:
        return self._live.protocol_version

    @property
    def instructions(self) -> str:
        return self._live.instructions or ""

    async def open(self, mode: Mode = "auto", spoken: str = "") -> None:
        """Connect. ``spoken``: the version of the protocol that was agreed on the last time. Raises McpError,
        LoginNeeded."""
        seconds = SHORT_PROBE_SECONDS if spoken in HANDSHAKE_PROTOCOL_VERSIONS else PROBE_SECONDS
        self._incoming = ServerMessages(self._log, min(seconds, self._config.connect_timeout / 3))
        # No newer protocol has this transport, so its servers need not be asked for one.
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
        """End the connection, and the server that was started for it."""
        self._stop.set()
        for task in self._tasks[1:]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # What it is asked

    async def offered(self) -> Offered:
        """List what the server offers. Raises McpError where its tools can't be listed."""
        can, notes = self._live.server_capabilities, list[str]()
        self._incoming.left_out.clear()
        tools: tuple[Mapping[str, Any], ...] = ()
        if can.tools is not None:
            listed = await self._pages(lambda cursor: self._live.list_tools(cursor=cursor), "tools")
            tools = tuple(tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed)
        resources: list[RemoteResource] = []
        prompts: list[RemotePrompt] = []
        if can.resources is not None:
            with _Noting(notes, "resources"):
                found = await self._pages(lambda cursor: self._live.list_resources(cursor=cursor), "resources")
                resources += [resource(each) for each in found]
            with _Noting(notes, "resource templates"):
                more = await self._pages(
                    lambda cursor: self._live.list_resource_templates(cursor=cursor), "resource_templates"
                )
                resources += [template(each) for each in more]
        if can.prompts is not None:
            with _Noting(notes, "prompts"):
                listed = await self._pages(lambda cursor: self._live.list_prompts(cursor=cursor), "prompts")
                prompts += [prompt(each) for each in listed]
        addresses = [each for each in resources if not hidden_in(each.uri)]
        named = [each for each in prompts if not hidden_in("".join([each.name, *(arg.name for arg in each.arguments)]))]
        if left := len(resources) + len(prompts) - len(addresses) - len(named):
            notes.append(f"{count(left, 'entry')} of its resources and prompts left out: names with hidden characters")
        return Offered(
            tools,
            tuple(addresses[:MOST_OFFERED]),
            tuple(named[:MOST_OFFERED]),
            tuple(notes),
            tuple(self._incoming.left_out),
        )

    async def call(self, tool: str, args: Mapping[str, Any], call: Call) -> RemoteResult:
        """Call a tool. Raises McpError."""
        report = _Reports(call)
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

    # How it lives

    @property
    def _live(self) -> Client:
        if self._client is None:
            raise McpError(f"The MCP server {self._config.name} is not connected.")
        return self._client

    async def _hold(self, mode: Mode, opened: asyncio.Future[None]) -> None:
        """Hold the connection until it is stopped or breaks."""
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
            sampling_callback=self.requests.sample if self._config.sampling and self._means.sample else None,
            list_roots_callback=self.requests.roots,
            logging_callback=self._logged,
            message_handler=self._heard,
        )
        return await stack.enter_async_context(client)

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        config = self._config
        if config.transport == "stdio":
            program = await self._means.program(config, self.requests.current)
            patience = min(UNFINISHED_SECONDS, config.call_timeout / 4)
            async with stdio(program, self._incoming, patience, self._ended) as streams:
                yield streams
            return
        authority = self._means.authority
        auth = await authority.auth(config) if authority else None
        one_stream = config.transport == "sse"
        self._watched = Watched(await self._means.http(config), self._incoming, one_stream=one_stream)
        options: dict[str, Any] = {
            "transport": self._watched,
            "headers": {"User-Agent": f"ba/{__version__}", **config.headers},
            "auth": auth,
            "timeout": httpx2.Timeout(30.0, read=300.0),
            "trust_env": False,
        }
        client = SseClient(self._ended, **options) if one_stream else httpx2.AsyncClient(**options)
        async with over_http(config, client, self._incoming, self._ended) as streams:
            yield streams

    def _ended(self, why: str) -> None:
        """Its program has ended: that is told before the calls that wait for it fail."""
        self._why = why
        self._on_end(why)
        self._stop.set()
        if self._config.transport == "sse" and self._connecting:
            # The SDK would go on waiting for an answer. The time raises RuntimeError when it has been left.
            with suppress(RuntimeError):
                self._connecting.reschedule(0)

    async def _listen(self) -> None:
        """Hear of changes as the newest protocol tells them; older servers send them by themselves."""
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
                # It tells no changes; reconnecting lists everything anew.
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

    # Failures in words

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


class _Reports:
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


class _Noting:
    """Notes the failure of a listing that is not needed for tools."""

    def __init__(self, notes: list[str], what: str) -> None:
        self._notes, self._what = notes, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, McpError):
            return False
        self._notes.append(f"its {self._what} can't be listed: {one_line(str(error), 160)}")
        return True
