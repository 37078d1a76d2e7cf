"""Words of the house that strangers did not understand: the code, its messages and the guide use plainer ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
WORDS = {
    r"\b(?:the|a) person\b": "the user",
    r"\b(?:is|are|was|were) told\b": "name who says it: ba reports, the model reads",
    r"\bstands\b(?! for\b)": "is, is written",
    r"\bwhat is no(?:ne\b|\b(?! longer))": "name the thing",
    r"\bby itself\b": "automatically, on its own",
}
"""Each pattern with what to write instead."""
FILES = sorted(
    path
    for folder in ("ba_tui", "config/guide")
    for path in (CHECKOUT / folder).rglob("*")
    if path.suffix in {".py", ".yaml", ".md"}
)


@pytest.mark.parametrize(("pattern", "better"), WORDS.items(), ids=WORDS.values())
def test_no_file_holds_a_word_of_the_old_dialect(pattern: str, better: str) -> None:
    search = re.compile(pattern, re.IGNORECASE)
    found = [
        f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if search.search(line)
    ]
    assert found == [], f"write: {better}"
