"""Logins of MCP servers: OAuth 2.1 with PKCE, discovery and dynamic registration, by the SDK's own client.

This module adds what the SDK leaves to its caller: checks of addresses, logins only on the user's request, and storage
of tokens. Tokens, codes and secrets appear in no message and no log.
"""

from __future__ import annotations

import asyncio
import html
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from ba_tui.core.ports.mcp import LoginNeeded, McpError, ServerConfig
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line

if TYPE_CHECKING:
    from ba_tui.settings.keys import TokenStore


HOST = "127.0.0.1"
PATH = "/callback"
MOST_BYTES = 16_000
SECONDS = 10.0
"""Seconds until a connection that sends nothing is closed."""
_PAGE = (
    "<!doctype html><meta charset=utf-8><title>ba</title>"
    "<body style='font-family:sans-serif;margin:4em'><p>{}</p></body>"
)


class Redirect:
    """The redirect target of a login: a listener on a port of 127.0.0.1. It accepts only an answer with the ``state``
    that was sent out, because any web page in the browser can send requests to it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._open: set[asyncio.StreamWriter] = set()
        self.state = ""

    async def open(self, port: int = 0) -> str:
        """Listen on ``port``, 0 for any free one; return the redirect address. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, HOST, port, limit=MOST_BYTES)
        taken = self._server.sockets[0].getsockname()[1]
        return f"http://{HOST}:{taken}{PATH}"

    async def answer(self) -> Mapping[str, str]:
        """Wait for the authorization server's answer; return ``code``, and ``iss`` if it is given. Raises McpError: the
        login was refused."""
        found = await self._answer
        if error := found.get("error"):
            why = one_line(paintable(found.get("error_description") or error, newlines=False), 200)
            raise McpError(f"{self._name} refused the login: {why}.", f"Try again: ba mcp login {self._name}")
        return found

    def close(self) -> None:
        """Stop listening."""
        if self._server:
            self._server.close()
        for writer in self._open:
            writer.close()
        self._answer.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
            body = _PAGE.format(html.escape(text)).encode()
            lines = (
                f"HTTP/1.1 {status}",
                "Content-Type: text/html; charset=utf-8",
                f"Content-Length: {len(body)}",
                "Cache-Control: no-store",
                "Referrer-Policy: no-referrer",
                "Connection: close",
            )
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def _take(self, first: str) -> tuple[str, str]:
        """Return status and text of the response to a request, given its first line."""
        method, _, rest = first.partition(" ")
        parts = urlsplit(rest.rpartition(" ")[0])
        if method != "GET" or parts.path != PATH:
            return "404 Not Found", "There is nothing here."
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        if not self.state or given.get("state") != self.state or not ({"code", "error"} & given.keys()):
            return "400 Bad Request", "This is not the answer to the login that ba began."
        if not self._answer.done():
            self._answer.set_result(given)
        if "error" in given:
            return "200 OK", f"The login to {self._name} was refused. You can close this page and return to ba."
        return "200 OK", f"You are logged in to {self._name}. You can close this page and return to ba."


Http: TypeAlias = Callable[[ServerConfig, httpx2.Auth | None], Awaitable[httpx2.AsyncClient]]
LOGIN_SECONDS = 300.0
UNUSED = "http://127.0.0.1/callback"
"""Placeholder where no login can begin, so no browser returns to it."""
_KNOCK = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ba", "version": "1"}},
}
_ACCEPT = {"Accept": "application/json, text/event-stream"}


# The SDK logs raised exceptions with all their data.
logging.getLogger("mcp.client.auth.oauth2").disabled = True


class OAuth:
    """Logins with a token store; ``http`` makes the client of a login."""

    def __init__(self, store: TokenStore, http: Http) -> None:
        self._store, self._http = store, http

    async def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return the authentication that adds and refreshes the stored tokens; None if none is stored."""
        kept = await asyncio.to_thread(self._store.read, config)
        return StoredLogin(config, Keeper(config, self._store, kept)) if kept.get("tokens") else None

    async def login(self, config: ServerConfig, show: Callable[[str], None]) -> None:
        """Log in; ``show`` gets the address to open. Cancelling ends it. Raises McpError: it failed, in one line.
        StorageError: the tokens can't be stored."""
        if config.transport == "stdio" or not config.url:
            raise McpError(f"{config.name} is a program: it needs no login.", "Its env holds what it needs.")
        if any(name.lower() == "authorization" for name in config.headers):
            raise McpError(
                f"{config.name} has an Authorization header in {config.source}, so it needs no login.",
                "Remove the header to log in by OAuth.",
            )
        kept = await asyncio.to_thread(self._store.read, config)
        keeper, redirect = Keeper(config, self._store, kept), Redirect(config.name)
        try:
            address = await _open(redirect, config, keeper)
            login = PersonLogin(config, keeper, address, redirect, show)
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._knock(config, login)
        except TimeoutError as error:
            raise _failed(config, f"nobody logged in within {LOGIN_SECONDS / 60:.0f} minutes") from error
        except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError, ValidationError) as error:
            raise _failed(
                config, one_line(str(error).splitlines()[0] if str(error) else "no reason given", 200)
            ) from error
        except httpx2.HTTPError as error:
            raise _failed(config, one_line(str(error) or type(error).__name__, 200)) from error
        except OSError as error:
            raise _failed(
                config, f"port {config.oauth.get('redirect_port')} can't be used: {error.strerror}"
            ) from error
        finally:
            redirect.close()
        await keeper.keep_metadata(login.context.oauth_metadata, login.context.protected_resource_metadata)

    async def _knock(self, config: ServerConfig, login: PersonLogin) -> None:
        """Send a request that the server answers with a demand to log in. Raises McpError."""
        async with await self._http(config, login) as client:
            method = "GET" if config.transport == "sse" else "POST"
            body = None if method == "GET" else _KNOCK
            async with client.stream(method, config.url, json=body, headers={**config.headers, **_ACCEPT}) as response:
                status = response.status_code
        if not login.asked:
            raise McpError(f"{config.name} answered {status} and asked for no login.", f"ba mcp test {config.name}")
        if status in {401, 403}:
            raise _failed(config, f"the server refuses the new token ({status})")


def _failed(config: ServerConfig, why: str) -> McpError:
    why = paintable(why, newlines=False)
    return McpError(f"The login to {config.name} failed: {why}.", f"Try again: ba mcp login {config.name}")


async def _open(redirect: Redirect, config: ServerConfig, keeper: Keeper) -> str:
    """Listen on the registered port, else on any port. Raises OSError."""
    if wanted := int(config.oauth.get("redirect_port") or 0):
        return await redirect.open(wanted)
    try:
        return await redirect.open(keeper.port)
    except OSError:
        return await redirect.open()


class Keeper:
    """The SDK's storage for one server. ``kept``: the stored data."""

    def __init__(self, config: ServerConfig, store: TokenStore, kept: dict[str, Any]) -> None:
        self._config, self._store, self._kept = config, store, kept

    @property
    def port(self) -> int:
        """Return the port of the registration; 0 if there is none."""
        given = self._kept.get("redirect", "")
        return urlsplit(given).port or 0 if isinstance(given, str) else 0

    @property
    def expires(self) -> float | None:
        """Return when the token expires, in seconds since the epoch; None if unknown."""
        value = self._kept.get("expires")
        return float(value) if isinstance(value, int | float) else None

    @property
    def metadata(self) -> tuple[OAuthMetadata | None, ProtectedResourceMetadata | None]:
        """Return the server's metadata from the login."""
        return _parsed(OAuthMetadata, self._kept.get("metadata")), _parsed(
            ProtectedResourceMetadata, self._kept.get("resource")
        )

    def came_back_to(self, address: str) -> None:
        """Store the redirect address of a registration; a registration for another address is dropped."""
        if self._kept.get("redirect") != address:
            self._kept.pop("client", None)
        self._kept["redirect"] = address

    def forget_tokens(self) -> None:
        """Drop the tokens before a new login."""
        self._kept.pop("tokens", None)

    async def keep_metadata(self, found: OAuthMetadata | None, resource: ProtectedResourceMetadata | None) -> None:
        for name, value in (("metadata", found), ("resource", resource)):
            if value is not None:
                self._kept[name] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self._save()

    async def get_tokens(self) -> OAuthToken | None:
        return _parsed(OAuthToken, self._kept.get("tokens"))

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._kept["tokens"] = tokens.model_dump(mode="json", exclude_none=True)
        self._kept["expires"] = time.time() + tokens.expires_in if tokens.expires_in else None
        await self._save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if given := self._config.oauth.get("client_id"):
            secret = self._config.oauth.get("client_secret") or None
            method = "client_secret_post" if secret else "none"
            return OAuthClientInformationFull(client_id=given, client_secret=secret, token_endpoint_auth_method=method)
        return _parsed(OAuthClientInformationFull, self._kept.get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._kept["client"] = client_info.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self._save()

    async def _save(self) -> None:
        await asyncio.to_thread(self._store.save, self._config, dict(self._kept))


def _parsed(kind: Any, value: Any) -> Any:
    try:
        return kind.model_validate(value) if isinstance(value, dict) else None
    except ValidationError:
        return None


class _Login(OAuthClientProvider):
    """The SDK's client, with a check of each address before it is requested."""

    def __init__(self, config: ServerConfig, keeper: Keeper, address: str) -> None:
        metadata = OAuthClientMetadata(
            client_name="ba",
            redirect_uris=[AnyUrl(address)],
            token_endpoint_auth_method="client_secret_post" if config.oauth.get("client_secret") else "none",
            scope=config.oauth.get("scope"),
        )
        super().__init__(config.url, metadata, keeper)
        self._config, self._keeper = config, keeper

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.token_expiry_time = self._keeper.expires
        if self.context.oauth_metadata is None:
            self.context.oauth_metadata, self.context.protected_resource_metadata = self._keeper.metadata

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        async with aclosing(super()._auth_flow(request)) as flow:
            wanted = await anext(flow)
            while True:
                if wanted is not request:
                    self.check(str(wanted.url))
                response = yield wanted
                if wanted is request:
                    self.judge(response)
                try:
                    wanted = await flow.asend(response)
                except StopAsyncIteration:
                    return

    def check(self, address: str) -> None:
        """Raise McpError if a login must not use ``address``."""
        check_address(self._config, address)

    def judge(self, response: httpx2.Response) -> None:
        """Judge the server's answer before it leads to a login."""


class StoredLogin(_Login):
    """Authentication of connections without a user: adds and refreshes tokens, and never begins a login."""

    def __init__(self, config: ServerConfig, keeper: Keeper) -> None:
        super().__init__(config, keeper, UNUSED)
        self._last = False

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        # A token may expire early: it is refreshed once before the user is asked to log in.
        for self._last in (False, True):
            async with aclosing(super()._auth_flow(request)) as flow:
                wanted = await anext(flow)
                try:
                    while True:
                        wanted = await flow.asend((yield wanted))
                except StopAsyncIteration:
                    return
                except _TryRefresh:
                    self.context.token_expiry_time = 1.0

    def judge(self, response: httpx2.Response) -> None:
        if not demands_login(response):
            return
        if response.status_code == 401 and not self._last and self.context.can_refresh_token():
            raise _TryRefresh
        why = "has ended" if response.status_code == 401 else "does not cover this"
        raise LoginNeeded(f"The login to {self._config.name} {why}.", f"Log in: ba mcp login {self._config.name}")


class _TryRefresh(Exception):
    """The server refused a token that can be refreshed."""


class PersonLogin(_Login):
    """A login that the user began. ``asked`` tells whether the server wanted one."""

    def __init__(
        self, config: ServerConfig, keeper: Keeper, address: str, redirect: Redirect, show: Callable[[str], None]
    ) -> None:
        super().__init__(config, keeper, address)
        keeper.came_back_to(address)
        keeper.forget_tokens()
        self._redirect, self._show = redirect, show
        self.asked = False
        self.context.redirect_handler = self._send_person
        self.context.callback_handler = self._come_back

    def judge(self, response: httpx2.Response) -> None:
        if demands_login(response):
            self.asked = True

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        # Scopes set by the user take precedence over those of the server.
        self.context.client_metadata.scope = self._config.oauth.get("scope") or self.context.client_metadata.scope
        return await super()._perform_authorization_code_grant()

    async def _send_person(self, address: str) -> None:
        self.check(address)
        self._redirect.state = parse_qs(urlsplit(address).query)["state"][0]
        self._show(address)

    async def _come_back(self) -> AuthorizationCodeResult:
        found = await self._redirect.answer()
        return AuthorizationCodeResult(code=found.get("code", ""), state=found.get("state"), iss=found.get("iss"))


def demands_login(response: httpx2.Response) -> bool:
    """Return whether the server demands a login, or one with more scopes."""
    step_up = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401 or step_up


def check_address(config: ServerConfig, address: str) -> None:
    """Raise McpError unless ``address`` is https, or is on this machine together with the server: a remote server must
    not direct a login to a local service, nor any login over an unencrypted connection."""
    parts, here = urlsplit(address), _is_here(urlsplit(config.url).hostname or "")
    near = _is_here(parts.hostname or "")
    web, plain = parts.scheme in {"https", "http"}, parts.scheme == "http"
    if parts.hostname and not parts.username and web and (here if near else not plain):
        return
    where = one_line(f"{parts.scheme}://{parts.hostname or ''}", 100)
    raise McpError(
        f"{config.name} sends its login to {where}, which ba refuses.",
        "A login needs https, and never leads back to this machine. Ask who runs the server.",
    )


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified or address.is_link_local
