"""A part of a text holds no part of a secret that begins or ends elsewhere."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.permissions.secrets.scanner import LEAST, lines_without_fragments, without_fragments

DRAWN = random.Random(7)
BODY = ["".join(DRAWN.choices(string.ascii_letters + string.digits, k=64)) for _ in range(8)]
KEY = ["-----BEGIN OPENSSH PRIVATE KEY-----", *BODY, "-----END OPENSSH PRIVATE KEY-----"]
TOKEN = "ghp_aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dE2fG4"
LINES = ["first", *KEY, "between", f"token: {TOKEN} and more", "last"]
WHOLE = "\n".join(LINES)


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_no_part_shows_a_part_of_a_secret(one: int, other: int) -> None:
    start, end = sorted((one, other))
    part, _ = without_fragments(WHOLE[start:end], WHOLE)
    for secret in (*BODY, TOKEN):
        held = secret in part
        assert not held or "\n".join(KEY) in part or secret == TOKEN
        if not held:
            shown = (secret[at : at + LEAST] for at in range(len(secret) - LEAST + 1))
            assert not any(piece in part for piece in shown)


@given(st.integers(0, len(LINES)), st.integers(0, len(LINES)))
def test_lines_stay_as_many(one: int, other: int) -> None:
    start, end = sorted((one, other))
    lines, kinds = lines_without_fragments(LINES[start:end], WHOLE)
    assert len(lines) == end - start
    assert not any(line in lines for line in BODY) or lines[1 - start : 1 - start + len(KEY)] == KEY
    assert kinds in {(), ("private key",)}


@pytest.mark.parametrize("text", [WHOLE, "\n".join(KEY), f"x {TOKEN}", "no secrets at all"])
def test_what_is_whole_is_left_to_others(text: str) -> None:
    assert without_fragments(text, WHOLE) == (text, ())
