"""Single values of a YAML file mean what YAML says they mean."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ba_tui.settings.document import parse_document

VALUES = [
    "0",
    "12",
    "010",
    "1_000",
    "-3",
    "0x1F",
    "0.20",
    ".5",
    "1e3",
    "1.5e3",
    "1:30",
    "yes",
    "~",
    "2026-10-26",
    "'5'",
    "text",
    "1.0.0",
    "00",
    "0.0",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_read_as_yaml_reads_it(value: str) -> None:
    read = parse_document(Path("x.yaml"), f"key: {value}\n").data["key"]
    expected = yaml.safe_load(value)
    assert (type(read), read) == (type(expected), expected)
