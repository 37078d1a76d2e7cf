"""An MCP server behind OAuth, and its authorization server, on one loopback port."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


@dataclass
class AuthorizationServer:
    """``strict`` about PKCE, redirect addresses and resources. Knobs: ``issuer``, ``elsewhere`` (an authorization
    endpoint at another place), ``lifetime`` of tokens in seconds, ``refuse`` people."""

    address: str = ""
    issuer: str = ""
    elsewhere: str = ""
    resource: str = ""
    lifetime: int = 3600
    refuse: bool = False
    registered: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    granted: set[str] = field(default_factory=set[str])
    asked: list[str] = field(default_factory=list[str])
    grants: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"{self.address}/mcp"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self.serve, methods=["POST", "GET"]),
                Route("/.well-known/oauth-protected-resource/mcp", self.protected),
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    async def serve(self, request: Request) -> Response:
        self.asked.append(request.headers.get("authorization", ""))
        if self.asked[-1].removeprefix("Bearer ") in self.granted:
            return JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {}})
        where = f"{self.address}/.well-known/oauth-protected-resource/mcp"
        return Response(status_code=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})

    async def protected(self, _: Request) -> Response:
        return JSONResponse({"resource": self.resource or self.url, "authorization_servers": [self.address]})

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer or self.address,
                "authorization_endpoint": self.elsewhere or f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "registration_endpoint": f"{self.address}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["read", "write"],
            }
        )

    async def register(self, request: Request) -> Response:
        given = await request.json()
        self.registered.append(given)
        return JSONResponse({**given, "client_id": f"client-{len(self.registered)}"}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        given = dict(request.query_params)
        back = {"state": given["state"]}
        if self.refuse:
            back |= {"error": "access_denied", "error_description": "not today"}
        else:
            back["code"] = f"code-{len(self.codes)}"
            self.codes[back["code"]] = given
        return RedirectResponse(f"{given['redirect_uri']}?{urlencode(back)}")

    async def token(self, request: Request) -> Response:
        given = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.grants.append(given["grant_type"])
        if given["grant_type"] == "refresh_token":
            if given["refresh_token"] not in {f"refresh-{number}" for number in range(len(self.grants))}:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        else:
            asked = self.codes[given["code"]]
            challenge = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest())
            if (
                challenge.rstrip(b"=").decode() != asked["code_challenge"]
                or given["redirect_uri"] != asked["redirect_uri"]
            ):
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
        token = f"token-{len(self.grants)}"
        self.granted.add(token)
        body = {"access_token": token, "token_type": "bearer", "expires_in": self.lifetime}
        return JSONResponse({**body, "refresh_token": f"refresh-{len(self.grants)}"})


@asynccontextmanager
async def serving(server: AuthorizationServer) -> AsyncGenerator[AuthorizationServer]:
    """``server`` on a free port of this loop."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        server.address = f"http://127.0.0.1:{held.getsockname()[1]}"
        running = uvicorn.Server(uvicorn.Config(server.app(), log_config=None, lifespan="off", ws="none"))
        running.config.load()
        task = asyncio.create_task(running.serve(sockets=[held]))
        try:
            yield server
        finally:
            running.should_exit = True
            await task


async def visit(address: str) -> httpx2.Response:
    """What a browser does with the address of a login."""
    async with httpx2.AsyncClient(follow_redirects=True, verify=False) as browser:
        return await browser.get(address)


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
