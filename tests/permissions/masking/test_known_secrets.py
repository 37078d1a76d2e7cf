"""The set of secret values that were found in the workspace."""

from __future__ import annotations

import threading

import pytest

from ba_tui.permissions.secrets.masking import LONGEST, MOST, KnownSecrets

TOKEN = "q7Rk-82hVn_51xLzQ"


def test_values_have_their_kind_and_the_version_grows_when_they_change():
    known = KnownSecrets()
    assert (dict(known.values()), known.version) == ({}, 0)
    known.add([TOKEN, f" {TOKEN}\n"], "value of .env")
    assert dict(known.values()) == {TOKEN: "value of .env"}
    before = known.version
    known.add([TOKEN], "password")
    assert dict(known.values()) == {TOKEN: "value of .env"}
    assert known.version == before
    known.add(["another-Value-7"], "password")
    assert known.version > before


@pytest.mark.parametrize(
    "value",
    [
        *("", "abc", "12345", "true", "False", "localhost", "localhost:5432", "production", "postgres", "100000"),
        *("1.2.30", "eu-west-1", "http://localhost:8080/", "xxxxxxxx", "${DB_PASS}", "<token>", "/var/log"),
        "a" * (LONGEST + 1),
    ],
)
def test_what_occurs_in_ordinary_text_is_not_kept(value: str):
    known = KnownSecrets()
    known.add([value], "value")
    assert not known.values()


def test_nothing_shows_a_value():
    known = KnownSecrets()
    known.add([TOKEN], "value")
    assert TOKEN not in f"{known!r} {known}"
    with pytest.raises(TypeError):
        known.values()["x"] = "y"  # pyright: ignore[reportIndexIssue]


def test_threads_may_add_at_once_and_the_number_is_bounded():
    known = KnownSecrets()
    threads = [
        threading.Thread(target=lambda at=at: [known.add([f"value-{at}-{n}"], "value") for n in range(200)])
        for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(known.values()) == 800
    known.add([f"other-{n}-x" for n in range(MOST)], "value")
    assert len(known.values()) == MOST
