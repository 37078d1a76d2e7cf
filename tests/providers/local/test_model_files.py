"""Which file a name means, what it says of itself, and what is told of one that can't be a model."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.providers.local_files import local_model, model_file, read_gguf
from ba_tui.settings import LocalSettings


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(window: int = 4_096) -> bytes:
    """The head of a model file."""
    pairs = (
        text("general.architecture") + struct.pack("<I", 8) + text("qwen2"),
        text("tokenizer.list") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("general.quantized") + struct.pack("<I?", 7, True),
        text("qwen2.context_length") + struct.pack("<II", 4, window),
    )
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def test_the_head_says_what_the_model_is(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(gguf())
    assert read_gguf(file) == 4_096
    model = local_model(f"local:{file}", LocalSettings())
    assert (model.id, model.provider, model.window, model.tools) == (f"local:{file}", "local", 4_096, "react")
    assert local_model(str(file), LocalSettings(window=2_048)).window == 2_048


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"hello, I am a text", "m.gguf is not a model in the GGUF format."),
        (b"", "m.gguf is not a model in the GGUF format."),
        (gguf()[:40], "m.gguf is damaged: its header is incomplete or invalid."),
        (b"GGUF" + b"\xff" * 200, "m.gguf is damaged: its header is incomplete or invalid."),
    ],
)
def test_a_file_that_is_no_model_is_told_in_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_gguf(tmp_path / "m.gguf")
    assert str(caught.value) == line
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("", "There is no model in “local:”."),
        ("/nowhere/m.gguf", "There is no model file /nowhere/m.gguf."),
        ("no_such_package_here", "There is no model file and no installed package 'no_such_package_here'."),
        ("a folder/with spaces", "There is no model file a folder/with spaces."),
        ("json", "The package json contains no model file."),
    ],
)
def test_a_name_that_means_no_file_is_told_in_one_line(name: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        local_model(f"local:{name}", LocalSettings())
    assert str(caught.value) == line


def test_a_package_brings_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "brings_model" / "data"
    folder.mkdir(parents=True)
    (tmp_path / "brings_model" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "tiny.gguf").write_bytes(gguf())
    monkeypatch.syspath_prepend(str(tmp_path))
    assert model_file("brings-model") == folder / "tiny.gguf"
    (folder / "other.gguf").write_bytes(gguf())
    with pytest.raises(UsageError, match="2 model files"):
        model_file("brings_model")
