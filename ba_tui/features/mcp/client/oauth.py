"""Logins of MCP servers: OAuth 2.1 with PKCE, discovery and dynamic registration, by the SDK's own client.

Around it stands what the SDK leaves to us: where addresses may lead, that nothing but a person's own act begins a
login, and where tokens are kept. Tokens, codes and secrets are in no message and no log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
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
from ba_tui.features.mcp.client.redirect import Redirect

if TYPE_CHECKING:
    from ba_tui.settings.mcp.tokens import TokenStore

Http: TypeAlias = Callable[[ServerConfig, httpx2.Auth | None], Awaitable[httpx2.AsyncClient]]
LOGIN_SECONDS = 300.0
UNUSED = "http://127.0.0.1/callback"
"""Stands where no login can begin, so no browser comes back."""
_KNOCK = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "ba", "version": "1"}},
}
_ACCEPT = {"Accept": "application/json, text/event-stream"}


# The SDK logs what is raised here anyway, with all that it holds.
logging.getLogger("mcp.client.auth.oauth2").disabled = True


class OAuth:
    """Logins over a store of tokens; see protocols.mcp.authority. ``http`` makes the client of a login."""

    def __init__(self, store: TokenStore, http: Http) -> None:
        self._store, self._http = store, http

    async def auth(self, config: ServerConfig) -> httpx2.Auth | None:
        """Return what adds and refreshes the stored tokens; None where none is stored."""
        kept = await asyncio.to_thread(self._store.read, config)
        return StoredLogin(config, Keeper(config, self._store, kept)) if kept.get("tokens") else None

    async def login(self, config: ServerConfig, show: Callable[[str], None]) -> None:
        """Log in; ``show`` is given the address to open. Cancelling ends it.

        Raises:
            McpError: it failed, in one line. StorageError: the tokens can't be kept.
        """
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
    """Listen where the registration said the browser comes back to, else anywhere. Raises OSError."""
    if wanted := int(config.oauth.get("redirect_port") or 0):
        return await redirect.open(wanted)
    try:
        return await redirect.open(keeper.port)
    except OSError:
        return await redirect.open()


class Keeper:
    """The SDK's storage for one server. ``kept``: what the store had."""

    def __init__(self, config: ServerConfig, store: TokenStore, kept: dict[str, Any]) -> None:
        self._config, self._store, self._kept = config, store, kept

    @property
    def port(self) -> int:
        """The port that the registration names; 0 for none."""
        given = self._kept.get("redirect", "")
        return urlsplit(given).port or 0 if isinstance(given, str) else 0

    @property
    def expires(self) -> float | None:
        """When the token ends, in seconds since the epoch; None when unknown."""
        value = self._kept.get("expires")
        return float(value) if isinstance(value, int | float) else None

    @property
    def metadata(self) -> tuple[OAuthMetadata | None, ProtectedResourceMetadata | None]:
        """What was learned of the server at the login."""
        return _parsed(OAuthMetadata, self._kept.get("metadata")), _parsed(
            ProtectedResourceMetadata, self._kept.get("resource")
        )

    def came_back_to(self, address: str) -> None:
        """Remember the address of a registration; one for another address is of no use."""
        if self._kept.get("redirect") != address:
            self._kept.pop("client", None)
        self._kept["redirect"] = address

    def forget_tokens(self) -> None:
        """A login begins anew."""
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
    """The SDK's client. Each address that it asks is checked first."""

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
        """Raises McpError when a login must not lead to ``address``."""
        check_address(self._config, address)

    def judge(self, response: httpx2.Response) -> None:
        """Look at the server's answer before a login begins because of it."""


class StoredLogin(_Login):
    """For connections that no person attends: it adds and refreshes tokens, and never begins a login."""

    def __init__(self, config: ServerConfig, keeper: Keeper) -> None:
        super().__init__(config, keeper, UNUSED)
        self._last = False

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        # A token may end before its time: it is refreshed once before the person is asked to log in.
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
    """A login that a person began. ``asked`` tells whether the server wanted one."""

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
        # Scopes that the person set win over those that the server names.
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
    """Whether the server wants a login, or one for more."""
    step_up = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    return response.status_code == 401 or step_up


def check_address(config: ServerConfig, address: str) -> None:
    """Raises McpError unless ``address`` is https, or stays on this machine with a server that is here as well: a
    server elsewhere must not lead a login to what listens on this machine, nor anybody's over an open line."""
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
