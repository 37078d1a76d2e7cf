"""The client under an SDK: who counts as this machine, and that nobody's certificate is taken on trust."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ba_tui.providers.faults import is_loopback
from ba_tui.providers.http import http_client


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:80", "http://a.localhost"])
def test_this_machine_is_known(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize("url", ["http://127.evil.example", "http://127.0.0.1.example.org", "http://localhost.example"])
def test_a_name_that_begins_like_this_machine_is_another(url: str) -> None:
    assert not is_loopback(url)


def signed_by_itself(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate for localhost that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    unsigned = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    made = unsigned.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
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
