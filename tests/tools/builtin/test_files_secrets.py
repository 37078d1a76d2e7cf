"""Secrets that read_file gives no part of, and no other name of."""

from __future__ import annotations

import random
import re
import string

import pytest

from ba_tui.core.results import Source
from tests.tools.conftest import Harness

DRAWN = random.Random(3)
BODY = ["".join(DRAWN.choices(string.ascii_letters + string.digits, k=64)) for _ in range(6)]
KEY = "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *BODY, "-----END OPENSSH PRIVATE KEY-----", "after"])


@pytest.mark.parametrize("offset", [1, 2, 4, 7, 8])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_part_of_a_key_is_masked_as_the_whole_is(harness: Harness, offset: int, limit: int) -> None:
    harness.write("notes.txt", KEY)
    result = await harness.run("read_file", path="notes.txt", offset=offset, limit=limit)
    assert not any(line in result.text for line in BODY)
    assert len(re.findall(r"^\d+\t", result.text, re.MULTILINE)) == min(limit, 10 - offset)
    assert isinstance(result.display, Source)
    assert result.display.text == "\n".join(KEY.split("\n")[offset - 1 : offset - 1 + limit]), "a person sees all of it"


async def test_a_part_of_a_key_far_into_a_huge_file_is_masked(harness: Harness) -> None:
    harness.write("huge.txt", f"{'x' * 1_900}\n" * 11_000 + KEY)
    result = await harness.run("read_file", path="huge.txt", offset=11_003, limit=2)
    assert result.text.startswith("11003\t[secret: private key]\n11004\t[secret: private key]\n")


async def test_a_token_at_the_cut_of_a_line_is_masked(harness: Harness) -> None:
    token = f"ghp_{BODY[0][:36]}"
    harness.write("wide.txt", "x " * 990 + token + " y" * 400)
    result = await harness.run("read_file", path="wide.txt")
    assert token[:12] not in result.text
    assert "[secret: GitHub token]" in result.text


@pytest.mark.parametrize("tool", ["read_file", "apply_patch"])
async def test_another_name_of_a_secret_is_secret_wherever_the_first_lies(harness: Harness, tool: str) -> None:
    secret = harness.write("far/away/.env", "PLAIN=words\n")
    (harness.root / "notes.txt").hardlink_to(secret)
    patch = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-nothing like it\n+x\n*** End Patch"
    args = {"path": "notes.txt"} if tool == "read_file" else {"patch": patch}
    result = await harness.run(tool, **args)
    assert result.error
    assert result.error.kind == "permission_denied"
    assert "notes.txt is a name of a file that holds secrets" in result.text
    assert "PLAIN" not in result.text
