"""What looks like a key does not leave the machine in an export; what merely resembles one does."""

from __future__ import annotations

import pytest

from ba_tui.sessions.foreign import redacted

A = "aB3" * 40
H = "0a1b2c3d4e5f6071" * 2
KEYS = [
    f"sk-ant-api03-{A}",
    f"sk-or-v1-{H}{H}",
    f"ghp_{A[:36]}",
    f"xoxb-1234567890-{A[:24]}",
    f"AIza{A[:35]}",
    f"ya29.{A}",
    f"SG.{A[:22]}.{A[:43]}",
    f"123456789:AA{A[:33]}",
    f"dapi{H}",
    f"key-{H}",
    f"AccountKey={A[:86]}==",
    "Authorization: Basic dXNlcjpwYXNz",
    f"Authorization: Bearer {A[:40]}",
    f"AGE-SECRET-KEY-1{A[:58].upper()}",
    f"shpat_{H}",
    f"lin_api_{A[:40]}",
    f"hvs.{A[:24]}",
    f"CF_API_TOKEN={A[:40]}",
    f"client_secret: {A[:32]}",
    "PASSWORD=hunter22",
    "postgres://me:pa55word@host/db",
]


@pytest.mark.parametrize("key", KEYS)
def test_what_looks_like_a_key_is_left_out(key: str) -> None:
    told = redacted(f"set {key} then go on")
    assert "[redacted]" in told
    assert not any(part in told for part in (A[:20], H[:20], "dXNlcjpwYXNz", "hunter22", "pa55word"))
    assert told.startswith("set ")
    assert told.endswith(" then go on")


@pytest.mark.parametrize(
    "words",
    [
        f"commit {H}{H[:8]}",
        "max_tokens=12000, tokens: 4200",
        "session: 20261121-120000-ab12",
        "The secret: patience.",
        "key-value pairs, task-list, sk-learn",
        "https://example.org:8080/a@b",
        "SKU 12345678 and N1.2.3",
        "the password is asked for",
    ],
)
def test_what_resembles_one_stays(words: str) -> None:
    assert redacted(words) == words
