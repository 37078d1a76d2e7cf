"""A long answer in Markdown, always the same: headings, paragraphs, lists, tables and code, as models write it."""

from __future__ import annotations

from collections.abc import Iterator

CLOSING = "That was the last line of the answer"
PHRASE = (
    "the reader takes one line of sales at a time and adds its amount to the region it belongs to, so that memory "
    "stays flat however long the file is; a line without a region is counted apart, because guessing would hide it"
)
WORDS = PHRASE.split()


def _sentence(seed: int, length: int) -> str:
    words = [WORDS[(seed * 7 + index * 3) % len(WORDS)] for index in range(length)]
    if seed % 3 == 0:
        words[length // 2] = f"`order_{seed}`"
    if seed % 4 == 0:
        words[length // 3] = f"**{words[length // 3]}**"
    return " ".join(words).capitalize() + "."


def _blocks() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"## Step {number}: {_sentence(number, 5)[:-1]}"
        yield " ".join(_sentence(number * 10 + index, 14 + index) for index in range(4))
        yield "\n".join(f"- {_sentence(number * 20 + index, 9)}" for index in range(5))
        if number % 2:
            rows = (
                f"| {name} | {number * 12 + place} | {number * 3.5 + place:.2f} |" for place, name in enumerate("NSW")
            )
            yield "\n".join(("| region | orders | amount |", "|---|---:|---:|", *rows))
        else:
            body = "\n".join(f"    total[{index}] += line.amount * {number}  # {index}" for index in range(8))
            yield f"```python\ndef add_{number}(line, total):\n{body}\n    return total\n```"


def answer(size: int) -> str:
    """``size`` characters of it, the closing line included."""
    text = ""
    ending = f"\n\n{CLOSING}."
    for block in _blocks():
        text += block + "\n\n"
        if len(text) + len(ending) >= size:
            break
    # Cut at a line end outside of a code block, so that the closing line is a paragraph of its own.
    cut = text.rfind("\n\n## ", 0, size - len(ending))
    return text[:cut] + ending
