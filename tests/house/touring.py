"""A chapter of the tour, with or without its pauses, in a scratch folder."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ba_tui.cli.demo import read_chapters, scratch, start_of
from ba_tui.core.start import Start
from ba_tui.core.values import frozen
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.resources import bundled, places

CHAPTERS = {chapter.name: chapter for chapter in read_chapters()}
DELAY = re.compile(r"delay: [0-9.]+")


@frozen
class Opened:
    """``model`` follows the chapter's script."""

    folder: Path
    start: Start
    model: str


@contextmanager
def opened(name: str, *, slow: bool = False) -> Generator[Opened]:
    """The chapter ``name``; without ``slow`` no word is waited for."""
    text = (bundled("config") / "demo" / "scripts" / f"{name}.yaml").read_text("utf-8")
    with scratch(places()) as folder:
        trust_folder(folder)
        script = folder.parent / f"{name}.yaml"
        script.write_text(text if slow else DELAY.sub("delay: 0", text), "utf-8")
        yield Opened(folder, start_of(CHAPTERS[name], "dark"), f"scripted:{script}")
