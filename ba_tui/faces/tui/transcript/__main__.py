"""A look at the transcript with made-up records: ``python -m ba_tui.faces.tui.transcript``. Not part of the app."""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult

from ba_tui.core.errors import ErrorInfo
from ba_tui.core.events import (
    Answered,
    Asked,
    Event,
    MessageDone,
    Notice,
    Steered,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import Block, Message, Text, Thinking, ToolUse, user
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, Diff, ToolResult, failure
from ba_tui.faces.tui.transcript.view import TranscriptView

ANSWER = """\
The report loads **twice**: `load()` is called in `main` and again in the cache. I changed three things:

1. `load()` now takes the *path*, so that tests need no global.
2. The cache keeps the parsed rows, see [the notes](https://example.org/cache).
   - entries older than an hour are dropped
   - [x] covered by a test
   - [ ] measured on the large file

```python
def load(path: Path, *, limit: int = 1_000) -> list[Row]:
    \"\"\"Rows of the file, newest first.\"\"\"
    with path.open() as lines:  # closed even when parsing fails
        return [Row.parse(line) for line in islice(lines, limit)]
```

| file | before | after | 说明 |
|:-----|-------:|------:|:----:|
| report.py | 2.41 s | 0.38 s | 缓存 |
| cache.py | 0.90 s | 0.12 s | 解析 |

> The second figure is from one run only.
"""


def calls() -> list[Event]:
    """One turn with every kind of row."""
    edit = ToolUse("2", "edit_file", {"path": "src/reports/quarterly/load.py"})
    shell = ToolUse("3", "shell", {"command": "pytest -q tests/test_load.py"})
    uses: tuple[Block, ...] = (
        Thinking("The file is read twice.\nI should look at who calls load()."),
        Text("I look at the callers first."),
        ToolUse("1", "grep", {"pattern": "load\\("}),
        edit,
        shell,
        ToolUse("4", "shell", {"command": "rm -rf build"}),
        ToolUse("5", "read_file", {"path": "notes.md"}),
    )
    diff = Diff("load.py", "def load():\n    return rows\n", "def load(path):\n    return rows(path)\n")
    output = CommandText("pytest -q", output="\x1b[32m....\x1b[0m\n4 passed in 0.41s", exit_code=0)
    asked = Question("permission", "Run it?", call_id="4", tool="shell")
    return [
        MessageDone(Message("assistant", uses)),
        ToolStarted(uses[2], "load\\("),  # pyright: ignore[reportArgumentType] - a call, as written above
        ToolFinished("1", ToolResult("src/a.py:3", summary="7 matches in 4 files"), 0.08),
        ToolStarted(edit, "src/reports/quarterly/load.py"),
        ToolFinished("2", ToolResult("done", diff, summary="+2 -2"), 0.01),
        ToolStarted(shell, "pytest -q tests/test_load.py"),
        ToolFinished("3", ToolResult("4 passed", output, summary="exit 0"), 12.4),
        ToolStarted(ToolUse("4", "shell", {}), "rm -rf build"),
        Asked("q", asked),
        Answered("q", Reply("deny", "use make clean instead")),
        ToolFinished("4", failure("permission_denied", "Denied: use make clean instead"), 0.0),
        ToolStarted(ToolUse("5", "read_file", {}), "notes.md"),
        ToolFinished("5", failure("not_found", "There is no file notes.md."), 0.002),
    ]


def story() -> list[Event]:
    """Two turns, the second one still running."""
    running = ToolUse("6", "shell", {"command": "make bench"})
    return [
        TurnStarted(user("Why is the quarterly report slow?\nLook at load() first."), at=100.0),
        *calls(),
        Steered(user("and keep the old signature", origin="steer")),
        MessageDone(Message("assistant", (Text(ANSWER),))),
        Notice("AGENTS.md is larger than 32 KB; its first part was read.", "warning", "Shorten it."),
        TurnEnded("done", at=148.0),
        TurnStarted(user("Measure it once more, please."), at=200.0),
        MessageDone(Message("assistant", (running,))),
        ToolStarted(running, "make bench", at=200.0),
        ToolProgress("6", "building\nrun 3 of 10"),
    ]


class Sample(App[None]):
    """``ascii``, ``light`` or the name of a theme as arguments."""

    def compose(self) -> ComposeResult:
        yield TranscriptView()

    def on_mount(self) -> None:
        words = sys.argv[1:]
        self.theme = next((word for word in words if word in self.available_themes), "textual-dark")
        view = self.query_one(TranscriptView)
        view.ascii = "ascii" in words
        view.clock = lambda: 212.0
        for event in story():
            view.apply(event)
        if "failed" in words:
            view.apply(TurnEnded("error", ErrorInfo("rate_limit", "The model is overloaded (529).", "Try again soon.")))
        view.focus()


if __name__ == "__main__":
    Sample().run()
