"""What is kept of the answers of model servers: by server and model, with its day, and never more than a cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.core.provider import Prices
from ba_tui.providers.model_facts import DAY, KEPT, OLDEST, KnownFacts, ModelFacts, ModelServer

HOSTED = ModelServer("openai", "https://models.example/v1")
OWN = ModelServer("openai", "http://127.0.0.1:8080/v1")
NOON = 1_793_361_600.0
"""2026-10-30, 12:00 UTC."""


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "model-facts.json"


def test_facts_outlive_the_process_and_prices_have_their_day(file: Path):
    facts = ModelFacts("m", 32_768, 8_192, Prices(1, 2, 0.1, 1), vision=True, owner="maker")
    KnownFacts(file, Clock()).learn(HOSTED, facts)
    found = KnownFacts(file, Clock()).find(HOSTED, "m")
    assert found
    assert found.prices == Prices(1, 2, 0.1, 1, date="2026-10-30")
    assert (found.window, found.max_output, found.vision, found.owner) == (32_768, 8_192, True, "maker")
    assert KnownFacts(file, Clock()).find(OWN, "m") is None


def test_a_vendor_is_asked_once_a_day_and_a_server_of_ones_own_once_a_start(file: Path):
    clock = Clock()
    known = KnownFacts(file, clock)
    assert [known.wanted(HOSTED, "m"), known.wanted(HOSTED, "m")] == [True, False]
    known.learn(HOSTED, ModelFacts("m"))
    known.learn(OWN, ModelFacts("m"))
    assert not KnownFacts(file, clock).wanted(HOSTED, "m")
    assert KnownFacts(file, clock).wanted(OWN, "m")
    clock.now += DAY + 1
    assert KnownFacts(file, clock).wanted(HOSTED, "m")


def test_who_tells_nothing_is_never_asked(file: Path):
    assert not KnownFacts(file).wanted(ModelServer("openai"), "gpt-6-sol")


def test_old_facts_are_forgotten(file: Path):
    clock = Clock()
    KnownFacts(file, clock).learn(HOSTED, ModelFacts("m", 4096))
    clock.now += OLDEST + 1
    assert KnownFacts(file, clock).find(HOSTED, "m") is None


def test_processes_write_beside_each_other_and_the_file_stays_small(file: Path):
    clock = Clock()
    one, other = KnownFacts(file, clock), KnownFacts(file, clock)
    one.learn(HOSTED, ModelFacts("a", 4096))
    other.learn(HOSTED, ModelFacts("b", 8192))
    later = KnownFacts(file, clock)
    assert later.find(HOSTED, "a")
    assert later.find(HOSTED, "b")
    for number in range(KEPT + 5):
        clock.now += 1
        later.learn(HOSTED, ModelFacts(f"m{number}"))
    assert len(json.loads(file.read_text())) == KEPT
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"https://models.example/v1 m": 3}',
        b'{"https://models.example/v1 m": {"name": "m", "at": "now"}}',
        b"[" * 9000,
    ],
)
def test_a_file_that_cannot_be_read_is_no_fault(file: Path, content: bytes):
    file.parent.mkdir()
    file.write_bytes(content)
    known = KnownFacts(file, Clock())
    assert known.find(HOSTED, "m") is None
    known.learn(HOSTED, ModelFacts("m", 4096))
    assert KnownFacts(file, Clock()).find(HOSTED, "m")


def test_values_in_the_file_are_checked_like_those_of_a_server(file: Path):
    file.parent.mkdir()
    wrong = {"name": "m", "at": NOON, "window": 0, "max_output": "big", "prices": [1, 2, -3, 4], "vision": "yes"}
    file.write_text(json.dumps({"https://models.example/v1 m": wrong}))
    assert KnownFacts(file, Clock()).find(HOSTED, "m") == ModelFacts("m")


def test_without_a_place_to_write_facts_last_as_long_as_the_process(tmp_path: Path):
    (tmp_path / "cache").write_text("a file, where a folder should be")
    known = KnownFacts(tmp_path / "cache" / "facts.json", Clock())
    known.learn(HOSTED, ModelFacts("m", 4096))
    assert known.find(HOSTED, "m") == ModelFacts("m", 4096)
