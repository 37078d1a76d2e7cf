"""The client under an SDK: who counts as this machine, certificates, redirects and proxies."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ba_tui.core.errors import BadRequest, ConnectionLost, ServerOverloaded
from ba_tui.core.messages import user
from ba_tui.core.provider import ModelRequest
from ba_tui.providers.faults import is_loopback
from ba_tui.providers.http import http_client
from ba_tui.providers.pipeline import Retries
from ba_tui.providers.scripted import Step
from tests.loopback import ModelServer, Raw
from tests.loopback.hostile import HostileServer, answer
from tests.loopback.replies import JSON
from tests.providers.conftest import Connect, until_error
from tests.providers.test_faults import make

ASK = ModelRequest("", [user("Hello")], ())
START = Callable[..., ModelServer]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:80", "http://a.localhost"])
def test_this_machine_is_known(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize("url", ["http://127.evil.example", "http://127.0.0.1.example.org", "http://localhost.example"])
def test_a_name_that_begins_like_this_machine_is_another(url: str) -> None:
    assert not is_loopback(url)


def signed_by_itself(folder: Path, days: int = 1, host: str = "localhost") -> ssl.SSLContext:
    """A server's context with a certificate for ``host`` that nobody vouches for, good for so many days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), 1, now - 500 * day, now + days * day)
    made = unsigned.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), False)
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    pem = serialization.Encoding.PEM
    file.write_bytes(key.private_bytes(pem, *plain) + made.sign(key, hashes.SHA256()).public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


async def test_a_local_server_can_not_lead_to_one_that_nobody_vouches_for(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def secret(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    other = await asyncio.start_server(secret, "localhost", 0, ssl=signed_by_itself(tmp_path))
    target = f"https://localhost:{other.sockets[0].getsockname()[1]}/"

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 307 Over There\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    local = await asyncio.start_server(elsewhere, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{local.sockets[0].getsockname()[1]}/"
    async with local, other, http_client(5, url) as client:
        with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate.verify.failed"):
            await client.get(url)
    assert asked == []


def leading(status: int, to: str) -> Raw:
    return Raw(b"", status, JSON, {"location": to})


def path(vendor: str) -> str:
    return "/v1/messages" if vendor == "anthropic" else "/v1/chat/completions"


@pytest.mark.parametrize("status", [307, 308])
async def test_a_request_is_sent_on_whole(model_server: START, connect: Connect, vendor: str, status: int) -> None:
    server = model_server([leading(status, path(vendor)), Step(say="Here.")])
    got, error = await until_error(connect(vendor, server).stream(ASK))
    assert error is None
    assert got[-1].text == "Here."
    assert server.requests[1].body == server.requests[0].body


async def test_no_header_tells_of_this_machine(model_server: START, connect: Connect, vendor: str) -> None:
    server = model_server([Step(say="Here.")])
    await until_error(connect(vendor, server).stream(ASK))
    assert [name for name in server.requests[0].headers if "stainless" in name] == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_request_that_would_be_lost_on_the_way_is_not_sent_on(
    model_server: START, connect: Connect, vendor: str, status: int
) -> None:
    server = model_server([leading(status, "https://other.example/v1?token=x")])
    _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest
    assert "https://other.example/v1" in str(error)
    assert "base_url" in error.hint


async def test_a_request_that_is_lost_on_a_later_way_is_not_sent_on(
    model_server: START, connect: Connect, vendor: str
) -> None:
    server = model_server([leading(307, path(vendor)), leading(302, path(vendor)), Step(say="Here.")])
    _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest
    assert len(server.requests) == 2


async def test_a_conversation_is_not_sent_on_to_another_machine(
    model_server: START, connect: Connect, vendor: str
) -> None:
    other = model_server([Step(say="Mine now.")])
    server = model_server([leading(307, other.url.replace("127.0.0.1", "localhost") + path(vendor))])
    _, error = await until_error(connect(vendor, server).stream(ASK))
    assert other.requests == []
    assert type(error) is BadRequest
    assert "http://localhost" in str(error)
    assert "base_url" in error.hint


async def test_a_way_in_circles_is_given_up(model_server: START, connect: Connect, vendor: str) -> None:
    server = model_server([leading(307, path(vendor))] * 30)
    _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest
    assert "base_url" in error.hint


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", BadRequest, "407 Proxy Authentication Required"),
        (b"HTTP/1.1 503 Down\r\n\r\n", ConnectionLost, "503 Down"),
        (None, ConnectionLost, "Nothing answers"),
    ],
)
async def test_a_proxy_in_the_way_is_named(
    vendor: str, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, kind: type, said: str
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer or b"")
        await writer.drain()
        writer.close()

    proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
    if answer is None:
        proxy.close()
    provider = make(vendor, "k", "https://models.example")
    async with proxy:
        _, error = await until_error(provider.stream(ASK))
        await provider.close()
    assert error is not None
    assert type(error) is kind
    assert said in str(error)
    assert "HTTPS_PROXY" in error.hint


async def test_a_certificate_that_nobody_vouches_for_is_told_once(
    connect: Connect, vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileServer(answer(b"HTTP/1.1 500 No\r\n\r\n"), signed_by_itself(tmp_path)) as server:
        got, error = await until_error(Retries(connect(vendor, server)).stream(ASK))
        assert type(error) is BadRequest
        assert "certificate" in str(error)
        assert "SSL_CERT_FILE" in error.hint
        assert got == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
        _, error = await until_error(connect(vendor, server).stream(ASK))
        # What the hint says helps.
        assert type(error) is ServerOverloaded


@pytest.mark.parametrize(
    ("days", "name", "cure"),
    [(-1, "localhost", "clock"), (1, "other.example", "base_url")],
)
async def test_what_is_wrong_with_a_certificate_decides_what_helps(
    connect: Connect, vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, name: str, cure: str
) -> None:
    context = signed_by_itself(tmp_path, days, name)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with HostileServer(answer(b"HTTP/1.1 500 No\r\n\r\n"), context) as server:
        _, error = await until_error(connect(vendor, server).stream(ASK))
    assert type(error) is BadRequest
    assert cure in error.hint
    assert server.asked == 0


async def test_a_connection_that_ends_while_it_is_secured_may_come_back(vendor: str) -> None:
    async def gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.transport.abort()

    async with await asyncio.start_server(gone, "127.0.0.1", 0) as server:
        provider = make(vendor, "k", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        _, error = await until_error(provider.stream(ASK))
        await provider.close()
    assert type(error) is ConnectionLost
