"""What an answer may call a row: by its labels and by its date, brought to one form for comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.words.wording import tokens_of

LONGEST = 80
"""Characters of a label that is looked for in answers."""
MOST_WORDS = 8
_PARTS = regex(r"\s*[/|;]\s*|\s+-\s+")
_HALVES = {
    **dict.fromkeys(("Q1", "Q2", "01", "02", "03", "04", "05", "06"), "H1"),
    **dict.fromkeys(("Q3", "Q4", "07", "08", "09", "10", "11", "12"), "H2"),
}


def key_of(name: str) -> str:
    """A name without case and without marks."""
    return " ".join(word for word, _, _ in tokens_of(name))


def aliases(label: str) -> list[str]:
    """What an answer may call a row: its label, a file without its folder, the parts of a compound label."""
    if len(label) > LONGEST:
        return []
    found = [label]
    if "/" in label and " " not in label:
        found.append(label.rpartition("/")[2])
    else:
        pieces = _PARTS.split(label)
        found += [piece for piece in pieces if len(piece) > 2] if len(pieces) > 1 else []
    stem, dot, ending = label.rpartition(".")
    if dot and stem and 2 <= len(ending) <= 8 and ending.isalpha():
        found.append(ending)
    words = label.split()
    if 1 < len(words) <= 4 and len(words[-1]) > 3 and words[-1].isalpha() and words[-1][0].isupper():
        found.append(words[-1])
    return found


def searched(label: str) -> Iterable[tuple[tuple[str, ...], str]]:
    """The names of a label that answers are searched for: their words and their keys. Small single letters are none."""
    for name in aliases(label):
        words = tuple(word for word, _, _ in tokens_of(name))
        letter = len(words) == 1 and len(words[0]) == 1 and words[0].isascii()
        if words and len(words) <= MOST_WORDS and not (letter and not label.isupper()):
            yield words, key_of(name)


def by_label(labels: Sequence[Sequence[str]]) -> Mapping[str, tuple[int, ...]]:
    """The rows of a table by the keys of their names."""
    found: dict[str, list[int]] = {}
    for row, held in enumerate(labels):
        for key in dict.fromkeys(key_of(name) for label in held for name in aliases(label)):
            found.setdefault(key, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def by_date(moments: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """The rows of a table by what an answer may say for their dates: a day also by its month, its half, its year."""
    found: dict[str, list[int]] = {}
    for row, moment in enumerate(moments):
        for form in _forms(moment):
            found.setdefault(form, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def _forms(moment: str) -> Iterable[str]:
    year, _, rest = ("", "", moment[2:]) if moment.startswith("--") else moment.partition("-")
    forms = [moment]
    if rest:
        forms += [year, f"--{rest}"]
        month, _, day = rest.partition("-")
        if half := _HALVES.get(month):
            forms += [f"{year}-{half}", f"--{half}"]
        if day:
            forms += [f"{year}-{month}", f"--{month}"]
    return (form for form in dict.fromkeys(forms) if form)
