"""Encodings without a network: unpacked once, checked, and replaced by something cruder when they are damaged."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest

from ba_tui.providers.token_encodings import CACHE, CONTENTS, OTHER_CACHE, Encodings

HELLO = "Hello, world! Grüße, 你好。"


@pytest.fixture(autouse=True)
def no_cache_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE, raising=False)
    monkeypatch.delenv(OTHER_CACHE, raising=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encodings") / "made" / "here"


def test_both_encodings_are_exact_and_lie_in_the_cache_folder(folder: Path):
    encodings = Encodings(folder)
    text = "def f(x):\n    return x ** 2  # squared, 12345\n"
    counts = [encodings.load(name).measure(HELLO + text) for name in ("o200k_base", "cl100k_base")]
    # As an independent encoder counts them.
    assert counts == [27, 29]
    assert sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()) == sorted(
        CONTENTS.values()
    )
    assert CACHE not in os.environ
    assert encodings.load("o200k_base") is encodings.load("o200k_base")


def test_special_words_are_plain_text(folder: Path):
    measure = Encodings(folder).load("o200k_base").measure
    assert measure("<|endoftext|>") > 1
    assert measure("") == 0
    assert measure("\ud800") > 0


def test_a_million_blanks_are_counted(folder: Path):
    measure = Encodings(folder).load("o200k_base").measure
    assert 0 < measure("x\n" + " " * 1_000_000 + "\ny") < 100_000


def test_an_unknown_encoding_counts_as_cl100k(folder: Path):
    found = Encodings(folder).load("p99k_other")
    assert found.name == "cl100k_base"
    assert "p99k_other" in found.warning


def test_damaged_files_give_characters_and_a_warning(tmp_path: Path):
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "o200k_base.tiktoken.gz").write_bytes(gzip.compress(b"IQ== 0\n"))
    (packed / "cl100k_base.tiktoken.gz").write_bytes(gzip.compress(b"IQ== 0\n" * 100)[:-20] + b"x" * 20)
    for name in (*CONTENTS, "another"):
        found = Encodings(tmp_path / "cache", packed).load(name)
        assert found.name == "characters"
        assert found.warning
        assert found.measure("a" * 40) == 10
    missing = Encodings(tmp_path / "cache", tmp_path / "nowhere").load("o200k_base")
    assert missing.name == "characters"


def test_a_damaged_cache_is_mended(tmp_path: Path):
    Encodings(tmp_path).load("cl100k_base")
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"broken")
    assert Encodings(tmp_path).load("cl100k_base").name == "cl100k_base"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == CONTENTS["cl100k_base"]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    found = Encodings(tmp_path / "file" / "cache").load("cl100k_base")
    assert (found.name, found.warning) == ("cl100k_base", "")


def test_the_persons_own_cache_is_used_when_it_is_whole_and_left_alone_when_not(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    Encodings(folder).load("cl100k_base")
    monkeypatch.setenv(CACHE, str(folder))
    own = tmp_path / "ours"
    assert Encodings(own).load("cl100k_base").name == "cl100k_base"
    assert not own.exists()
    empty = tmp_path / "theirs"
    empty.mkdir()
    monkeypatch.setenv(CACHE, str(empty))
    assert Encodings(own).load("cl100k_base").name == "cl100k_base"
    assert list(empty.iterdir()) == []
    assert os.environ[CACHE] == str(empty)
