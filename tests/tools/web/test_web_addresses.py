"""What an address names is found out before anything is asked; what hides its host is refused."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.errors import UsageError
from ba_tui.tools.addresses import AddressReach, is_public, read_address, read_reach
from ba_tui.tools.failures import ToolFailure


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("https://example.com", "https://example.com/"),
        (" HTTP://Example.COM:80/a?b=c#d ", "http://example.com/a?b=c"),
        ("https://example.com.:8443/ä b".replace(" ", ""), "https://example.com:8443/%C3%A4b"),
        ("https://bücher.example/?q=ü&x=%41", "https://xn--bcher-kva.example/?q=%C3%BC&x=%41"),
        ("http://[2606:4700:0::1111]/", "http://[2606:4700::1111]/"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/"),
        ("http://127.0.0.1.:80/", "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("https://a_b.example/x?next=https://other/", "https://a_b.example/x?next=https://other/"),
    ],
)
def test_plain_form(text: str, plain: str) -> None:
    assert str(read_address(text)) == plain


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "1 to"),
        ("example.com/page", "does not begin"),
        ("file:///etc/passwd", "files are not fetched"),
        ("ftp://example.com", "does not begin"),
        ("javascript:alert(1)", "does not begin"),
        ("https:///path", "does not begin"),
        ("https://user:secret@example.com/", "user name or password"),
        ("https://example.com@evil.example/", "user name or password"),
        ("http://good.example\\@evil.example/", "backslashes"),
        ("http://exa mple.com/", "spaces"),
        ("http://example.com/\x00", "control"),
        ("http://example.com/a\u3000b", "spaces"),
        ("http://2130706433/", "number"),
        ("http://0x7f000001/", "number"),
        ("http://0177.0.0.1/", "number"),
        ("http://127.1/", "number"),
        ("http://example.0x7f/", "number"),
        ("http://[::1%25eth0]/", "host"),
        ("http://[::g]/", "can't be fetched"),
        ("http://ex..com/", "host"),
        ("http://-x.example/", "host"),
        (f"http://{'a' * 64}.example/", "host"),
        ("http://example.com:99999/", "0-65535"),
        ("http://example.com:0/", "port"),
        ("https://example.com/" + "x" * 4_000, "1 to"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(ToolFailure, match=why) as caught:
        read_address(text)
    assert caught.value.kind == "invalid_parameters"
    assert "secret" not in str(caught.value)


@given(st.one_of(st.text(max_size=60), st.from_regex(r"https?://[^\s]{1,30}", fullmatch=True)))
def test_any_text_is_an_address_in_plain_form_or_refused(text: str) -> None:
    try:
        address = read_address(text)
    except ToolFailure:
        return
    assert read_address(str(address)) == address
    assert address.path.startswith("/")


INSIDE = """
127.0.0.1 127.9.9.9 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200
192.0.0.192 198.18.0.1 168.63.129.16 224.0.0.1 240.0.0.1 255.255.255.255 192.88.99.1 203.0.113.1
::1 :: fe80::1 fc00::1 fd00:ec2::254 fec0::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2001::1 2001:db8::1 3fff::1 100::1 5f00::1
"""
OUTSIDE = """
8.8.8.8 1.1.1.1 93.184.216.34 2606:4700::1111 2a00:1450:4001::5 ::ffff:8.8.8.8 64:ff9b::808:808
"""


def test_the_inside_is_not_public_however_it_is_written() -> None:
    assert [ip for ip in INSIDE.split() if is_public(ip_address(ip))] == []


def test_the_outside_is_public() -> None:
    assert [ip for ip in OUTSIDE.split() if not is_public(ip_address(ip))] == []


def test_what_the_person_named_may_be_reached() -> None:
    reach = read_reach(("localhost", "*.corp.example", "10.1.0.0/16", "[fd00::1]"))
    assert reach.allows("localhost", ip_address("127.0.0.1"))
    assert reach.allows("wiki.corp.example", ip_address("192.168.0.1"))
    assert reach.allows("elsewhere.example", ip_address("10.1.2.3"))
    assert reach.allows("elsewhere.example", ip_address("::ffff:10.1.2.3"))
    assert reach.allows("x.example", ip_address("fd00::1"))
    assert not reach.allows("corp.example", ip_address("192.168.0.1"))
    assert not reach.allows("evilcorp.example", ip_address("192.168.0.1"))
    assert not reach.allows("elsewhere.example", ip_address("10.2.0.1"))
    assert not AddressReach().allows("localhost", ip_address("127.0.0.1"))


@pytest.mark.parametrize("entry", ["", "*.", "http://localhost", "10.0.0.0/99", "a b"])
def test_a_wrong_entry_is_named(entry: str) -> None:
    with pytest.raises(UsageError, match="is not a host or a network"):
        read_reach((entry,))


def test_same_site() -> None:
    first = read_address("http://example.com/")
    for other in ("https://example.com/x", "https://www.example.com/", "http://example.com/y"):
        assert first.same_site(read_address(other)), other
    for other in ("https://example.org/", "http://sub.example.com/", "http://example.com:8080/"):
        assert not first.same_site(read_address(other)), other
    assert str(first.joined("../a/b?c#d")) == "http://example.com/a/b?c"
    with pytest.raises(ToolFailure):
        first.joined("file:///etc/passwd")
