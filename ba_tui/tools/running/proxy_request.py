"""What a program asks of a proxy, read from the first bytes it sends, and the answers it is given. Pure.

Connections are egress_proxy.py's; which hosts may be reached is egress_hosts.py's.
"""

from __future__ import annotations

from ba_tui.core.values import frozen
from ba_tui.tools.failed import Failed
from ba_tui.tools.web.addresses import WebAddress, read_address

END = b"\r\n\r\n"
_OWN = ("proxy-", "connection:", "keep-alive:", "host:")
_METHOD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-")


class InvalidRequest(Exception):
    """It is nothing that a proxy does; the text says why."""


@frozen
class ProxyRequest:
    """``head``: what the host itself is sent first; empty for a tunnel, in which the program says all."""

    address: WebAddress
    head: bytes = b""


def read_request(head: bytes) -> ProxyRequest:
    """What ``head``, up to and with its empty line, asks for.

    Raises:
        InvalidRequest: it can't be read in one way alone, or is no request of a proxy.
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
        # One request a connection: a second one could be for another host.
        lines = (f"{method} {address.path} {version}", f"Host: {address.place}", *kept, "Connection: close")
        return ProxyRequest(address, "\r\n".join(lines).encode("ascii") + END)
    if not target.rpartition(":")[2].isdigit() or set(target) & set("/?#@"):
        raise InvalidRequest("a tunnel leads to a host and a port")
    return ProxyRequest(_address(f"https://{target}/"))


def _address(text: str) -> WebAddress:
    try:
        return read_address(text)
    except Failed as error:
        raise InvalidRequest(str(error)) from error


def response(status: int, why: str) -> bytes:
    """An answer that says ``why`` in its first line as well: of a refused tunnel, programs show no more."""
    plain = "".join(char if char.isascii() and char.isprintable() else "?" for char in why)[:300]
    body = f"{plain}\n".encode()
    head = f"HTTP/1.1 {status} {plain}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close"
    return head.encode() + END + body
