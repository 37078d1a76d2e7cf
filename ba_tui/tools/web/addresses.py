"""Web addresses: what a text from a model really names, and which machines may be asked.

Pure: names are looked up and connections made in client.py, which checks every address it is about to use here.
"""

from __future__ import annotations

import ipaddress
from typing import Final, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.tools.failed import Failed

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_CHARS = 4_000
_PORTS: Final = {"http": 80, "https": 443}
_LABEL = regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = regex(r"(?:0x[0-9a-f]*|[0-9]+)")
_UNSEEN = regex(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff\\]")
_ESCAPED = "%!$&'()*+,;=:@/?~-._"
_WRITE = "Write it whole, such as https://example.com/page."

# Reachable from outside by their class, and yet the inside of a cloud, a relay or a part of the network we are in.
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
    """``host`` is a name in ASCII or an IP address without brackets; ``path`` begins with ``/`` and holds the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """Host and port as in an address and a Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.place}"

    @property
    def ip(self) -> Ip | None:
        """The address that the host is written as, if it is one."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    def __str__(self) -> str:
        return self.origin + self.path

    def same_site(self, other: WebAddress) -> bool:
        """Whether ``other`` is the same site: also with or without ``www.``, and over http or https."""
        usual = self.port == _PORTS[self.scheme] and other.port == _PORTS[other.scheme]
        return _bare(self.host) == _bare(other.host) and (usual or self.port == other.port)

    def joined(self, link: str) -> WebAddress:
        """Where a ``link`` on this page leads. Raises Failed as ``read_address`` does."""
        try:
            return read_address(urljoin(str(self), link.strip()))
        except ValueError as error:
            raise _refused(link, "it is no address") from error


@frozen
class AddressReach:
    """Which machines may be asked. Addresses of the public internet always; of the rest only those named here."""

    names: tuple[str, ...] = ()
    """Hosts, or ``*.`` and a domain, that may lie anywhere."""
    networks: tuple[IpNetwork, ...] = ()

    def allows(self, host: str, ip: Ip) -> bool:
        """Whether ``ip``, to which ``host`` leads, may be connected to."""
        if is_public(ip) or self.names_host(host):
            return True
        same = _embedded(ip) or ip
        return any(same in network for network in self.networks if network.version == same.version)

    def names_host(self, host: str) -> bool:
        return any(_fits(name, host) for name in self.names)

    def with_host(self, host: str) -> AddressReach:
        return AddressReach((*self.names, host), self.networks)


def read_reach(entries: tuple[str, ...]) -> AddressReach:
    """What a settings list allows: ``localhost``, ``*.corp.example``, ``10.1.0.0/16``, ``192.168.0.7``.

    Raises:
        UsageError: an entry is none of these.
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
    """Whether ``ip`` is a machine of the public internet, whichever way it is written."""
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded(ip)
        if inner is not None:
            return is_public(inner)
        if ip not in _UNICAST:
            return False
    closed = any(ip in network for network in _CLOSED if network.version == ip.version)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not closed


def read_address(text: str) -> WebAddress:
    """The address that ``text`` is, in one plain form.

    Raises:
        Failed: it is none, names no web page, holds a password, or writes its host in a way that hides it.
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
        raise Failed("invalid_parameters", message, "Leave out what stands before the @.")
    if port == 0:
        raise _refused(text, "there is no port 0")
    host = _host(parts.hostname or "", text)
    path = quote(parts.path or "/", safe=_ESCAPED)
    query = f"?{quote(parts.query, safe=_ESCAPED)}" if parts.query else ""
    return WebAddress(scheme, host, port or _PORTS[scheme], path + query)


def _host(host: str, text: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host)) if "%" not in host else _no_host(text)
        except ValueError:
            return _no_host(text)
    try:
        # Full-width digits and dots turn into plain ones here, before anything is judged.
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


def _refused(text: str, why: str, hint: str = _WRITE) -> Failed:
    return Failed("invalid_parameters", f"{text[:200]!r} can't be fetched: {why}.", hint)


def _embedded(ip: Ip) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour


def _bare(host: str) -> str:
    return host.removeprefix("www.")


def _fits(name: str, host: str) -> bool:
    return host.endswith(name[1:]) if name.startswith("*.") else host == name
