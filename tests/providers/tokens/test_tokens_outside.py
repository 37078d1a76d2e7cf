"""Counts against what providers themselves counted, on real material beside the checkout."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, TypeAlias

import pytest

from ba_tui.core.messages import user
from ba_tui.providers.token_counter import (
    FILE,
    DynamicTokenCounter,
    EncoderConfig,
    estimate_tokens,
    load_encoders,
)
from ba_tui.providers.token_encodings import Encodings, encoding_of
from ba_tui.resources import bundled

pytestmark = pytest.mark.outside
HIDDEN = 2.0
"""Times the words: such a count holds more than the text (a schema, reasoning, another agent's words)."""
Measuring: TypeAlias = Callable[[EncoderConfig], Callable[[str], int]]
REGISTRY = load_encoders([bundled("config") / FILE])


@pytest.fixture(scope="module")
def rows(outside_data: Path) -> list[dict[str, Any]]:
    lines = (outside_data / "token_counts.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def encodings(tmp_path_factory: pytest.TempPathFactory) -> Encodings:
    return Encodings(tmp_path_factory.mktemp("encodings"))


def errors(rows: list[dict[str, Any]], measure: Measuring) -> dict[str, list[float]]:
    """By family: how far each answer, and each prompt as a message, is from what was billed."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        config = REGISTRY.find(row["model"])
        margin = config.margin
        counter = DynamicTokenCounter(measure(config), lambda margin=margin: margin, config.family)
        prompt = "input" in row["kind"]
        counted = counter.conversation([user(row["text"])]) if prompt else counter.text(row["text"])
        if row["true_tokens"] <= HIDDEN * counted:
            found[config.family.value].append(counted / row["true_tokens"] - 1)
    return found


def test_the_precise_count_is_within_the_bar(rows: list[dict[str, Any]], encodings: Encodings):
    found = errors(rows, lambda config: encoding_of(config, REGISTRY, encodings).measure)
    assert sum(map(len, found.values())) >= len(rows) * 0.97
    for family, off in found.items():
        assert mean(map(abs, off)) <= 0.10, family
        assert sum(error < -0.15 for error in off) <= len(off) * 0.03, family


def test_the_cheap_estimate_is_within_the_bar(rows: list[dict[str, Any]]):
    found = errors(rows, lambda _: estimate_tokens)
    for family, off in found.items():
        assert mean(map(abs, off)) <= 0.10, family
        assert sum(error < -0.15 for error in off) <= len(off) * 0.03, family
