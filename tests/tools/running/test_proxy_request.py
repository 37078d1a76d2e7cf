"""What a proxy takes for a request: one reading alone, of one host."""

from __future__ import annotations

import pytest

from ba_tui.tools.egress_proxy import InvalidRequest, read_request, response


def test_a_request_is_passed_on_as_the_host_expects_it() -> None:
    request = read_request(
        b"POST http://Site.test/a%20b?c=1 HTTP/1.1\r\nHost: other.test\r\nProxy-Authorization: x\r\n"
        b"Connection: keep-alive\r\nContent-Length: 3\r\n\r\n"
    )
    assert (request.address.host, request.address.port) == ("site.test", 80)
    assert request.head == (
        b"POST /a%20b?c=1 HTTP/1.1\r\nHost: site.test\r\nContent-Length: 3\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [
        ("pypi.org:443", "pypi.org", 443),
        ("PyPI.org.:8443", "pypi.org", 8443),
        ("[2606:4700::1]:443", "2606:4700::1", 443),
    ],
)
def test_a_tunnel_leads_to_a_host_and_a_port(target: str, host: str, port: int) -> None:
    request = read_request(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    assert (request.address.host, request.address.port, request.head) == (host, port, b"")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET / HTTP/1.1",
        b"GET https://site.test/ HTTP/1.1",
        b"GET ftp://site.test/ HTTP/1.1",
        b"GET http://user:word@site.test/ HTTP/1.1",
        b"GET http://site.test/ HTTP/2.0",
        b"GET  http://site.test/ HTTP/1.1",
        b"get http://site.test/ HTTP/1.1",
        b"GET http://site.test/\tx HTTP/1.1",
        b"GET http://site.test/ HTTP/1.1\r\nA: b\r\n folded",
        b"GET http://site.test/ HTTP/1.1\nHost: other",
        b"GET http://site.test/ HTTP/1.1\r\nA: \xff",
        b"GET http://0x7f000001/ HTTP/1.1",
        b"CONNECT site.test HTTP/1.1",
        b"CONNECT site.test:443/x HTTP/1.1",
        b"CONNECT user@site.test:443 HTTP/1.1",
        b"CONNECT site.test:0 HTTP/1.1",
        b"CONNECT site.test:99999 HTTP/1.1",
        b"CONNECT :443 HTTP/1.1",
    ],
)
def test_what_may_mean_something_else_is_refused(head: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_request(head + b"\r\n\r\n")


def test_an_answer_is_one_line_whatever_was_said() -> None:
    said = response(403, "no\r\nSet-Cookie: x\x1b[31m 名")
    assert said.startswith(b"HTTP/1.1 403 no??Set-Cookie: x?[31m ?\r\nContent-Type")
