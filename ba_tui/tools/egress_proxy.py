"""The HTTP proxy for confined commands. It runs outside the sandbox and passes only connections to allowed hosts, which
rules or the user decide once for each host.

The supervisor opens the listening socket in the command's network and passes it to ba, so no other program runs there.
Traffic is never stored or logged.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.events import Judged
from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.permissions.answers import NETWORK
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.addresses import AddressReach, Resolve, WebAddress, look_up, read_address, read_reach
from ba_tui.tools.failures import ToolFailure
from ba_tui.tools.guards.permission import keep_rule

HostVerdict: TypeAlias = Allow | Deny | Ask
HostJudge: TypeAlias = Callable[[WebAddress, Call], HostVerdict]
RuleKeeper: TypeAlias = Callable[[str, Literal["session", "always"]], None]
HostCaller: TypeAlias = Literal["rule", "mode", "person", "hook"]

RESOLVE_SECONDS = 10.0
MAX_ADDRESSES = 4
USUAL = (80, 443)
NOT_PUBLIC = "it is not on the public internet"
ALONE = "a background command can't ask you; add the host to commands.domains"


@frozen
class NetworkAccess:
    """The network access of confined commands. ``judge`` applies rules and the mode to an address, ``remember``
    saves a rule; ``reach``: which machines may be reached at all."""

    judge: HostJudge
    remember: RuleKeeper
    reach: AddressReach = AddressReach()
    resolve: Resolve = look_up

    async def machines(self, address: WebAddress) -> Sequence[str]:
        """Look up and check the addresses to connect to. Empty for a host that may never be reached.

        Raises:
            OSError: the name is unknown or the look-up timed out.
        """
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = [address.host] if address.ip else await self.resolve(address.host, address.port)
        return [ip for ip in found if self.reach.allows(address.host, ip_address(ip.partition("%")[0]))][:MAX_ADDRESSES]


class HostDecisions:
    """The decisions on hosts for one command. ``attended``: the command is awaited, so the user can be asked."""

    def __init__(self, network: NetworkAccess, call: Call, command: CommandText, *, attended: bool) -> None:
        self.network = network
        self.attended = attended
        self.refused: dict[str, str] = {}
        """The refused hosts, with reasons."""
        self._call = call
        self._command = command
        self._decided: dict[tuple[str, int], asyncio.Task[str]] = {}
        self._asking: set[object] = set()
        self._waited = 0.0
        self._since = 0.0

    @property
    def waited(self) -> float:
        """Seconds in which the user was asked; they do not reduce the command's time."""
        return self._waited + (time.monotonic() - self._since if self._asking else 0.0)

    async def refusal(self, address: WebAddress) -> str:
        """Return why ``address`` is refused; empty if allowed. Concurrent callers wait for the same answer."""
        key = (address.host, 0 if address.port in USUAL else address.port)
        task = self._decided.get(key)
        if task is None:
            task = self._decided[key] = asyncio.create_task(self._decide(address))
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Stop asking, as the command is no longer awaited; wait for open questions."""
        self.attended = False
        if open_ones := [task for task in self._decided.values() if not task.done()]:
            await asyncio.wait(open_ones)

    def end(self) -> None:
        for task in self._decided.values():
            task.cancel()

    async def _decide(self, address: WebAddress) -> str:
        if address.ip and not self.network.reach.allows(address.host, address.ip):
            # No answer could allow this host, so the user is not asked.
            return self._note(address, "deny", "mode", why=NOT_PUBLIC)
        verdict = await asyncio.to_thread(self.network.judge, address, self._call)
        match verdict:
            case Allow(by=rule):
                return self._note(address, "allow", "rule" if rule else "mode", rule)
            case Deny(reason=reason, by=rule):
                return self._note(address, "deny", "rule" if rule else "mode", rule, reason)
            case Ask():
                return await self._ask(verdict, address)

    async def _ask(self, ask: Ask, address: WebAddress) -> str:
        if not self.attended:
            return self._note(address, "deny", "mode", ask.by, ALONE)
        args = {"address": address.origin}
        question = Question(
            "permission",
            f"Let this command reach {address.place}?",
            call_id=self._call.id,
            tool=NETWORK,
            args=dict(args),
            preview=self._command,
            reason=ask.reason,
            risks=("network",),
            rule=ask.rule,
            timeout=ask.timeout,
            on_timeout=ask.on_timeout,
        )
        self._since = self._since if self._asking else time.monotonic()
        self._asking.add(question.text)
        try:
            reply = await self._call.ask(question)
        finally:
            self._asking.discard(question.text)
            self._waited += 0.0 if self._asking else time.monotonic() - self._since
        who: HostCaller = "mode" if reply.by == "nobody" else reply.by
        if reply.edited is not None and reply.edited != args:
            return self._note(address, "deny", who, "", "the user wrote another address instead")
        if reply.choice in {"deny", "text"}:
            said = reply.text.strip()
            return self._note(
                address,
                "deny",
                who,
                "",
                f"the user said no{f': {said}' if said else ''}" if who == "person" else said,
            )
        await keep_rule(self.network.remember, reply, ask, self._call)
        return self._note(address, "allow", who, ask.by)

    def _note(
        self,
        address: WebAddress,
        word: Literal["allow", "deny"],
        who: HostCaller,
        rule: str = "",
        why: str = "",
    ) -> str:
        """Record the decision for the audit and return the refusal."""
        if word == "deny":
            self.refused[address.place] = why = " ".join(why.split()).rstrip(".")
        hash = args_hash({"address": address.origin})
        self._call.branch.emit(Judged(self._call.id, NETWORK, word, who, rule, f"to reach {address.place}", hash))
        return why


END = b"\r\n\r\n"
_OWN = ("proxy-", "connection:", "keep-alive:", "host:")
_METHOD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-")


class InvalidRequest(Exception):
    """A request that a proxy can't serve."""


@frozen
class ProxyRequest:
    """A request to the proxy. ``head``: the first bytes for the host; empty for a tunnel."""

    address: WebAddress
    head: bytes = b""


def read_request(head: bytes) -> ProxyRequest:
    """Parse ``head``, up to and including its empty line.

    Raises:
        InvalidRequest: it is ambiguous, or no request to a proxy.
    """
    try:
        first, *fields = head.removesuffix(END).decode("ascii").split("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidRequest("its head is not plain text") from error
    if any(char in head.replace(b"\r\n", b"") for char in b"\r\n\0") or any(line[:1] in {" ", "\t"} for line in fields):
        raise InvalidRequest("its head can be read in more than one way")
    words = first.split(" ")
    if len(words) != 3 or not words[0] or set(words[0]) - _METHOD or words[2] not in {"HTTP/1.1", "HTTP/1.0"}:
        raise InvalidRequest("it is no HTTP request")
    method, target, version = words
    if method != "CONNECT":
        if not target.lower().startswith("http://"):
            raise InvalidRequest("a proxy is given whole addresses")
        address = _address(target)
        kept = [line for line in fields if not line.lower().startswith(_OWN)]
        # One request per connection: a second one could be for another host.
        lines = (f"{method} {address.path} {version}", f"Host: {address.place}", *kept, "Connection: close")
        return ProxyRequest(address, "\r\n".join(lines).encode("ascii") + END)
    if not target.rpartition(":")[2].isdigit() or set(target) & set("/?#@"):
        raise InvalidRequest("a tunnel leads to a host and a port")
    return ProxyRequest(_address(f"https://{target}/"))


def _address(text: str) -> WebAddress:
    try:
        return read_address(text)
    except ToolFailure as error:
        raise InvalidRequest(str(error)) from error


def response(status: int, why: str) -> bytes:
    """Return a response with ``why`` in its first line too: for a refused tunnel, programs show only that line."""
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in why)[:300]
    body = f"{plain}\n".encode()
    head = f"HTTP/1.1 {status} {plain}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    return head.encode() + END + body


Stream: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

PORT = 3128
CHUNK_BYTES = 65_536
MAX_CONNECTIONS = 64
"""Most simultaneous connections of one command."""
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 10.0
_PROXY = f"http://127.0.0.1:{PORT}"
_INSIDE = "localhost,127.0.0.1,::1"
ENVIRONMENT: Mapping[str, str] = {
    name: value
    for upper, value in (
        ("HTTP_PROXY", _PROXY),
        ("HTTPS_PROXY", _PROXY),
        ("ALL_PROXY", _PROXY),
        ("NO_PROXY", _INSIDE),
    )
    for name in (upper, upper.lower())
}


class Decisions(Protocol):
    """Decides which hosts a program may reach. ``refused``: refused hosts, with reasons; ``waited``: seconds in
    which the user was asked."""

    network: NetworkAccess
    refused: dict[str, str]

    @property
    def waited(self) -> float: ...

    async def refusal(self, address: WebAddress) -> str:
        """Return why ``address`` is refused; empty if allowed."""
        ...


class EgressProxy:
    """The proxy of one program: call ``offer`` before its start, ``begin`` after it, in any thread, and ``close`` at
    its end. Create it on the event loop."""

    def __init__(self, decisions: Decisions) -> None:
        self.decisions = decisions
        self._loop = asyncio.get_running_loop()
        self.environment = ENVIRONMENT
        self._link: socket.socket | None = None
        self._inner: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waited(self) -> float:
        """Seconds in which the user was asked about a host."""
        return self.decisions.waited

    def offer(self) -> tuple[tuple[int, ...], str]:
        """Return the descriptor that the supervisor inherits, and the supervisor's argument for it."""
        self._link, self._inner = socket.socketpair()
        number = self._inner.fileno()
        return (number,), f",{number},{PORT}"

    def begin(self) -> None:
        """Close our copy of the supervisor's descriptor and wait for its listening socket."""
        if self._inner:
            self._inner.close()
        if self._link:
            self._link.setblocking(False)
            self._loop.call_soon_threadsafe(self._listen)

    def _listen(self) -> None:
        if self._link and self._link.fileno() >= 0:
            self._loop.add_reader(self._link, self._arrived)

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self._unlink()
        if self._server:
            self._server.close()
        for task in (*self._tasks, *((self._opening,) if self._opening else ())):
            task.cancel()

    def _unlink(self) -> None:
        for end in (self._inner, self._link):
            if end and end.fileno() >= 0:
                if end is self._link:
                    self._loop.remove_reader(end)
                end.close()

    def _arrived(self) -> None:
        """Receive the listening socket. Without one the command has no network, as without a proxy."""
        numbers: list[int] = []
        with suppress(OSError):
            numbers = socket.recv_fds(self._link, 16, 1)[1] if self._link else []
        self._unlink()
        for number in numbers:
            listener = socket.socket(fileno=number)
            listener.setblocking(False)
            self._opening = asyncio.create_task(self._open(listener))

    async def _open(self, listener: socket.socket) -> None:
        try:
            self._server = await asyncio.start_server(self._connected, sock=listener, limit=CHUNK_BYTES)
        except (OSError, ValueError, asyncio.CancelledError):
            listener.close()
        if self._closed and self._server:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._closed:
            writer.transport.abort()
            return
        self._tasks.add(task)
        try:
            if len(self._tasks) > MAX_CONNECTIONS:
                writer.write(response(503, f"more than {MAX_CONNECTIONS} connections at a time"))
            else:
                await self._serve(reader, writer)
            await writer.drain()
        except asyncio.CancelledError:
            # The command has ended, so nothing waits for this task.
            writer.transport.abort()
        except (OSError, EOFError, BaError):
            # The program disconnected, or the decision could not be saved; nothing is passed on.
            pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                request = read_request(await reader.readuntil(END))
        except (InvalidRequest, asyncio.LimitOverrunError, TimeoutError) as error:
            why = str(error) if isinstance(error, InvalidRequest) else "its head is too long or late"
            writer.write(response(400, f"ba does not pass this on: {why}"))
            return
        place = request.address.place
        if why := await self.decisions.refusal(request.address):
            writer.write(response(403, f"ba does not let this command reach {place}: {why}"))
            return
        try:
            machines = await self.decisions.network.machines(request.address)
        except (OSError, UnicodeError, ValueError):
            writer.write(response(502, f"{place} was not found"))
            return
        if not machines:
            self.decisions.refused[place] = NOT_PUBLIC
            writer.write(response(403, f"ba does not let this command reach {place}: {NOT_PUBLIC}"))
            return
        await self._pass(request, machines, (reader, writer))

    async def _pass(self, request: ProxyRequest, machines: Sequence[str], near: Stream) -> None:
        far = await _reached(machines, request.address.port)
        if far is None:
            near[1].write(response(502, f"{request.address.place} could not be connected to"))
            return
        try:
            if request.head:
                far[1].write(request.head)
            else:
                near[1].write(b"HTTP/1.1 200 Connection established" + END)
            await asyncio.gather(_pump(near[0], far[1]), _pump(far[0], near[1]))
        finally:
            far[1].transport.abort()


async def _reached(machines: Sequence[str], port: int) -> Stream | None:
    """Connect to the first address that answers; None if none does."""
    for machine in machines:
        with suppress(OSError):
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(machine, port, limit=CHUNK_BYTES)
    return None


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy one direction, no faster than the receiver reads."""
    try:
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        # This ends the other direction, too.
        target.transport.abort()


def command_proxy(
    network: NetworkAccess, call: Call, command: CommandText, *, attended: bool
) -> tuple[EgressProxy, HostDecisions]:
    """Return the proxy of a command and its decisions. Call it on the event loop."""
    decisions = HostDecisions(network, call, command, attended=attended)
    return EgressProxy(decisions), decisions


def network_access(judge: HostJudge, remember: RuleKeeper, private: tuple[str, ...]) -> NetworkAccess:
    """Return the network access of commands that may also reach the ``private`` addresses of the settings."""
    return NetworkAccess(judge, remember, read_reach(private))
