"""The README and the pages of the guide as tests read them: their code blocks, code spans and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "config" / "guide"
PAGES = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.md"))}
"""The pages by file name, the contents among them."""
DOCUMENTS = {"the README": (CHECKOUT / "README.md").read_text("utf-8"), **PAGES}
FENCE = re.compile(r"^(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)^```", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A code block: where it stands, its language, and the comment on the line before it."""

    document: str
    number: int
    note: str
    language: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.document}-{self.number}"

    @property
    def runs(self) -> bool:
        return not self.note.startswith("not run: ")

    @property
    def file(self) -> str:
        """The file that the block is; empty for none."""
        return self.note.removeprefix("file: ") if self.note.startswith("file: ") else ""


def blocks(language: str = "", document: str = "") -> list[Block]:
    """Return the code blocks of a language, of one document or of all."""
    return [
        block
        for name, text in DOCUMENTS.items()
        if document in {"", name}
        for number, found in enumerate(FENCE.finditer(text), 1)
        for block in [Block(name, number, found[1] or "", found[2], found[3])]
        if language in {"", block.language}
    ]


def spans(text: str) -> list[str]:
    """Return the code spans of a document, without those in code blocks."""
    return SPAN.findall(FENCE.sub("", text).replace("\\|", "|"))


def commands() -> list[str]:
    """Return every ``ba …`` of a code block or a code span of any document."""
    lines = [line for block in blocks() for line in block.text.replace("\\\n", "").splitlines()]
    lines += [span for text in DOCUMENTS.values() for span in spans(text)]
    return sorted({command for line in lines for command in _called(line)})


def _called(line: str) -> Iterator[str]:
    for part in re.split(r"&&|\||;", line):
        command = re.sub(r"^(\S+/)?ba(?= |$)", "ba", part.strip()).split(" #")[0]
        command = re.sub(r" <[^\"']*$", "", command).strip()
        if command == "ba" or command.startswith("ba "):
            yield command
