"""``ba demo``: the guided tour. Each chapter runs in a scratch folder with sample data and a separate ba home.

``config/demo/tour.yaml`` lists the chapters; ``config/demo/scripts`` has the model's answers.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from ba_tui.cli.application import NoColor, Theme
from ba_tui.cli.launch import first_theme, no_screen, open_app
from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start
from ba_tui.core.text.wording import correction
from ba_tui.core.values import frozen
from ba_tui.processes.scratch import clear_scratch
from ba_tui.processes.scratch import scratch as scratch_folder
from ba_tui.providers.marked_yaml import YamlNode, read_yaml
from ba_tui.providers.scripted import read_script
from ba_tui.resources import UserFolders, bundled, places

NEXT = "The demo has removed its files. For your own work, go to a folder of yours and type ba."


@frozen
class Chapter:
    """A chapter of the tour: its first ``prompt``, and ``shown``, a one-line description."""

    name: str
    title: str
    shown: str
    prompt: str


def demo(
    chapter: Annotated[str, typer.Argument(metavar="CHAPTER", help="Start this chapter, without the list.")] = "",
    list_chapters: Annotated[bool, typer.Option("--list", help="Print the chapters.")] = False,
    theme: Theme = None,
    no_color: NoColor = False,
) -> int:
    """Take the guided tour: real tools, sample data.

    A scripted model answers, in a scratch folder. It needs no key.
    """
    chapters = read_chapters()
    if list_chapters:
        _print(chapters)
        return 0
    chosen = _named(chapter, chapters) if chapter else None
    if why := no_screen():
        raise UsageError(f"The demo can't be shown here. {why}", "ba demo --list prints its chapters.")
    theme = theme or first_theme(places())
    colour = not no_color and not os.environ.get("NO_COLOR")
    clear_scratch()
    if chosen:
        code = _play(chosen, theme, color=colour)
        following = _after(chosen, chapters)
        sys.stdout.write(f"The next chapter: ba demo {following.name}\n" if following else "")
        sys.stdout.write(f"{NEXT}\n")
        return code
    at: Chapter | None = chapters[0]
    while at and (picked := _pick(chapters, at, theme, color=colour)):
        if code := _play(picked, theme, color=colour):
            return code
        at = _after(picked, chapters) or chapters[0]
    sys.stdout.write(f"{NEXT}\n")
    return 0


def read_chapters() -> Sequence[Chapter]:
    """Return all chapters in order."""
    top = read_yaml(bundled("config") / "demo" / "tour.yaml")
    return [_chapter(node) for node in top.mapping(("chapters",))["chapters"].sequence()] if top else []


def _chapter(node: YamlNode) -> Chapter:
    found = node.mapping(("name", "title", "shown", "prompt"))
    return Chapter(**{key: value.text() for key, value in found.items()})


def _named(name: str, chapters: Sequence[Chapter]) -> Chapter:
    """Return the chapter ``name``. Raises UsageError when there is no such chapter."""
    names = [chapter.name for chapter in chapters]
    if name in names:
        return chapters[names.index(name)]
    if name.isdecimal() and 0 < int(name) <= len(chapters):
        return chapters[int(name) - 1]
    raise UsageError(f"The demo has no chapter {name!r}.", correction(name, names, f"Chapters: {', '.join(names)}."))


def _after(chapter: Chapter, chapters: Sequence[Chapter]) -> Chapter | None:
    return next(iter(chapters[chapters.index(chapter) + 1 :]), None)


def _print(chapters: Sequence[Chapter]) -> None:
    wide = max(len(chapter.name) for chapter in chapters)
    for chapter in chapters:
        sys.stdout.write(f"{chapter.name:<{wide}}  {chapter.title}: {chapter.shown}\n")


def _pick(chapters: Sequence[Chapter], at: Chapter, theme: str, *, color: bool) -> Chapter | None:
    from ba_tui.faces.tui.screens.models import ChapterList  # noqa: PLC0415 - --list must never load Textual

    rows = [(chapter.name, chapter.title, chapter.shown) for chapter in chapters]
    picked = ChapterList(rows, at.name, theme, color=color).run()
    return _named(picked, chapters) if picked else None


def _play(chapter: Chapter, theme: str, *, color: bool) -> int:
    with scratch(places()) as folder:
        return open_app({"model": f"demo/{chapter.name}"}, start_of(chapter, theme, color=color), folder, trust=True)


def start_of(chapter: Chapter, theme: str = "", *, color: bool = True) -> Start:
    """Return the start of the chapter, with its suggested prompts."""
    script = read_script(bundled("config") / "demo" / "scripts" / f"{chapter.name}.yaml")
    suggestions = {step.say: step.next for step in script.steps if step.next}
    return Start(chapter.prompt, theme=theme, color=color, suggestions=suggestions, kept=False)


@contextmanager
def scratch(own: UserFolders) -> Generator[Path]:
    """Yield the working folder of a chapter, with a scratch folder as ba's home.

    The user's sessions, settings and rules are neither read nor written; only themes are copied from ``own``."""
    before = {name: value for name, value in os.environ.items() if name.startswith("BA_")}
    with scratch_folder("demo") as top:
        try:
            shutil.copytree(bundled("config") / "demo" / "home", top / "home")
            shutil.copytree(bundled("config") / "demo" / "data", top / "sales")
            with suppress(OSError):
                shutil.copytree(own.config / "themes", top / "home" / "themes")
            for name in before:
                del os.environ[name]
            os.environ["BA_HOME"] = str(top / "home")
            yield top / "sales"
        finally:
            os.environ.pop("BA_HOME", None)
            os.environ.update(before)
