"""Web addresses: parses them, looks up their hosts and proxies, and decides which hosts are allowed.

Code that connects looks up the host and checks each of its IP addresses here first.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.tools.failures import ToolFailure

if TYPE_CHECKING:
    import ssl

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_CHARS = 4_000
_PORTS: Final = {"http": 80, "https": 443}
_LABEL = regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = regex(r"(?:0x[0-9a-f]*|[0-9]+)")
_UNSEEN = regex(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff\\]")
_ESCAPED = "%!$&'()*+,;=:@/?~-._"
_WRITE = "Write it whole, such as https://example.com/page."

# Public by their class, but used inside of clouds, for relays or in local networks.
_CLOSED = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "3fff::/20"),
    )
)
_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@frozen
class WebAddress:
    """``host``: a name in ASCII, or an IP address without brackets; ``path``: from ``/`` on, with the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """Return host and port in the form of a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.place}"

    @property
    def ip(self) -> Ip | None:
        """Return the host as an IP address; None if it is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    def __str__(self) -> str:
        return self.origin + self.path

    def same_site(self, other: WebAddress) -> bool:
        """Return whether ``other`` is the same site; ``www.`` and http or https make no difference."""
        usual = self.port == _PORTS[self.scheme] and other.port == _PORTS[other.scheme]
        return _bare(self.host) == _bare(other.host) and (usual or self.port == other.port)

    def joined(self, link: str) -> WebAddress:
        """Return the address of a ``link`` on this page. Raises ToolFailure as ``read_address`` does."""
        try:
            return read_address(urljoin(str(self), link.strip()))
        except ValueError as error:
            raise _refused(link, "it is no address") from error


@frozen
class AddressReach:
    """The allowed hosts: all public addresses, and the private ones named here."""

    names: tuple[str, ...] = ()
    """Host names, or ``*.`` and a domain, that may have private addresses."""
    networks: tuple[IpNetwork, ...] = ()

    def allows(self, host: str, ip: Ip) -> bool:
        """Return whether connections to ``ip``, an address of ``host``, are allowed."""
        if is_public(ip) or self.names_host(host):
            return True
        same = _embedded(ip) or ip
        return any(same in network for network in self.networks if network.version == same.version)

    def names_host(self, host: str) -> bool:
        return any(_fits(name, host) for name in self.names)

    def with_host(self, host: str) -> AddressReach:
        return AddressReach((*self.names, host), self.networks)


def read_reach(entries: tuple[str, ...]) -> AddressReach:
    """Parse a list in the settings, such as ``localhost``, ``*.corp.example``, ``10.1.0.0/16``, ``192.168.0.7``.

    Raises:
        UsageError: an entry is invalid.
    """
    names: list[str] = []
    networks: list[IpNetwork] = []
    for entry in entries:
        text = entry.strip().lower().strip("[]")
        try:
            networks.append(ipaddress.ip_network(text, strict=False))
            continue
        except ValueError:
            name = text.removeprefix("*.")
        if not name or not all(_LABEL.fullmatch(label) for label in name.split(".")):
            raise UsageError(f"{entry!r} is not a host or a network.", "Write localhost or 10.1.0.0/16.")
        names.append(text)
    return AddressReach(tuple(names), tuple(networks))


def is_public(ip: Ip) -> bool:
    """Return whether ``ip`` is a public address, also if it embeds an IPv4 address."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded(ip)
        if inner is not None:
            return is_public(inner)
        if ip not in _UNICAST:
            return False
    closed = any(ip in network for network in _CLOSED if network.version == ip.version)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not closed


def read_address(text: str) -> WebAddress:
    """Parse and normalise a web address.

    Raises:
        ToolFailure: it is invalid, not http or https, contains a password, or has a disguised host.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        raise _refused(text, f"an address has 1 to {MAX_CHARS} characters")
    if _UNSEEN.search(text) or len(text.split()) != 1:
        raise _refused(text, "it holds spaces, backslashes or control characters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _refused(text, str(error)) from error
    scheme = parts.scheme.lower()
    if scheme == "file":
        raise _refused(text, "files are not fetched", "Use read_file.")
    if scheme not in _PORTS or not parts.netloc:
        raise _refused(text, "it does not begin with http:// or https://")
    if "@" in parts.netloc:
        message = "The address holds a user name or password, which is not sent."
        raise ToolFailure("invalid_parameters", message, "Leave out the part before the @.")
    if port == 0:
        raise _refused(text, "there is no port 0")
    host = _host(parts.hostname or "", text)
    path = quote(parts.path or "/", safe=_ESCAPED)
    query = f"?{quote(parts.query, safe=_ESCAPED)}" if parts.query else ""
    return WebAddress(scheme, host, port or _PORTS[scheme], path + query)


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of ``host`` from the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def proxy_of(address: WebAddress, proxies: Mapping[str, str]) -> str:
    """Return the proxy for ``address``; empty for a direct connection. ``proxies`` as in the environment:
    by scheme, ``all`` and ``no``."""
    direct = [name.strip().lstrip(".") for name in proxies.get("no", "").lower().split(",")]
    if any(name in {"*", address.host} or (name and address.host.endswith(f".{name}")) for name in direct):
        return ""
    return proxies.get(address.scheme) or proxies.get("all") or ""


@cache
def system_tls() -> ssl.SSLContext:
    """Return a TLS context with the system's certificates. The first call blocks."""
    import httpx2  # noqa: PLC0415 - loaded by each caller

    return httpx2.create_ssl_context()


def _host(host: str, text: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host)) if "%" not in host else _no_host(text)
        except ValueError:
            return _no_host(text)
    try:
        # IDNA turns full-width digits and dots into plain ones, so do it before any check.
        name = host.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        return _no_host(text)
    labels = name.split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError as error:
            raise _refused(text, "its host is a number", "Write the name, or four decimal numbers.") from error
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return _no_host(text)
    return name


def _no_host(text: str) -> str:
    raise _refused(text, "its host can't be read")


def _refused(text: str, why: str, hint: str = _WRITE) -> ToolFailure:
    return ToolFailure("invalid_parameters", f"{text[:200]!r} can't be fetched: {why}.", hint)


def _embedded(ip: Ip) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address, or None."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _fits(name: str, host: str) -> bool:
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
