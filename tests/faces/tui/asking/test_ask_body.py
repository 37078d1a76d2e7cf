"""The body of a question is never blank: late threads, odd previews, small screens, resizes, other questions."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from textual.pilot import Pilot
from textual.screen import ModalScreen

from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, Diff, Diffs, Display, Prose, ScriptCall, Source, Table, Todos
from ba_tui.faces.tui.inspector.rows import RowView
from tests.faces.tui.asking.test_ask import EDIT, PUSH, Chat, asked, seen, settle

LONG = "x" * 9_000
DEEP: dict[str, Any] = {"rows": [{"id": n, "name": f"row {n}", "tags": ["a", "b"]} for n in range(300)]}
BEFORE = "".join(f"value_{n} = {n}\n" for n in range(800))
PREVIEWS: dict[str, tuple[Display | None, dict[str, Any]]] = {
    "none": (None, {"url": "https://example.org"}),
    "no arguments": (None, {}),
    "one long line": (CommandText(f"echo {LONG}"), {"command": f"echo {LONG}"}),
    "many lines": (CommandText("true\n" * 900), {"command": "true\n" * 900}),
    "blank command": (CommandText("\n\n"), {"command": "\n\n", "timeout": 5}),
    "empty prose": (Prose(""), {"text": ""}),
    "empty source": (Source("a.sql", ""), {"sql": ""}),
    "script without arguments": (
        ScriptCall("skills/sql/scripts/query.py", (), None, ""),
        {"skill_id": "sql", "script_name": "query.py"},
    ),
    "empty table": (Table((), ()), {"table": "t"}),
    "no changes": (Diffs(()), {"patch": "*** Begin"}),
    "no todos": (Todos(()), {"items": []}),
    "same": (Diff("a.py", "one\n", "one\n"), {"path": "a.py"}),
    "large": (Diff("a.py", BEFORE, BEFORE.replace("1 =", "2 =")), {"path": "a.py"}),
    "huge": (None, DEEP),
}


def body(app: Chat) -> str:
    """What stands in the body's place on the screen, without its gutter signs."""
    sheet = app.query_one("#ask-body", RowView)
    region = sheet.region.intersection(app.screen.region)
    lines = seen(app).split("\n")[region.y : region.bottom]
    return "".join(text[region.x : region.right] for text in lines).strip(" $")


async def fed(pilot: Pilot[None], question: Question) -> Chat:
    app = await asked(pilot, question)
    await settle(pilot)
    return app


async def test_every_preview_shows_something() -> None:
    async with Chat().run_test(size=(40, 10)) as pilot:
        for name, (preview, args) in PREVIEWS.items():
            question = Question(
                "permission", "Allow?", tool="tool", args=args, preview=preview, rule="tool", reason="asks"
            )
            app = await fed(pilot, question)
            assert body(app), f"{name}\n{seen(app)}"
            assert "4 n  No" in seen(app)
            app.panel.withdraw_all()
            await settle(pilot)


async def test_a_short_body_does_not_wait_for_threads() -> None:
    """Every thread of the loop is busy, as when imports or slow disks hold them."""
    free = threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    held = loop.run_in_executor(None, free.wait)
    try:
        async with Chat().run_test() as pilot:
            app = pilot.app
            assert isinstance(app, Chat)
            for number, question in enumerate((PUSH, EDIT)):
                app.panel.ask(f"q{number}", question, "main")
            await pilot.pause()
            await pilot.pause()
            assert "git push" in body(app), seen(app)
            app.clock.now += 1
            await pilot.press("y")
            await pilot.pause()
            assert "a.py" in body(app), seen(app)
            app.panel.withdraw("q1")
            preview, args = PREVIEWS["large"]
            app.panel.ask("q2", Question("permission", "Allow?", tool="t", args=args, preview=preview), "main")
            await pilot.pause()
            await pilot.pause()
            assert "Preparing the preview" in body(app), seen(app)
            free.set()
            await held
            await settle(pilot)
            await settle(pilot)
            assert "a.py" in body(app)
    finally:
        free.set()


async def test_no_resize_empties_it() -> None:
    async with Chat().run_test(size=(120, 36)) as pilot:
        for name in ("one long line", "large", "huge"):
            preview, args = PREVIEWS[name]
            app = await fed(pilot, Question("permission", "Allow?", tool="tool", args=args, preview=preview))
            app.query_one("#ask-body", RowView).scroll_end(animate=False)
            for size in [(40, 10), (200, 50)]:
                await pilot.resize_terminal(*size)
                assert body(app), f"{name}\n{seen(app)}"
                await settle(pilot)
                assert body(app), f"{name}\n{seen(app)}"
            app.panel.withdraw_all()
            await settle(pilot)


async def test_one_question_goes_while_another_comes() -> None:
    async with Chat().run_test(size=(40, 10)) as pilot:
        app = await asked(pilot, PUSH)
        for number in range(2, 8):
            await pilot.press("y")
            app.panel.ask(f"q{number}", EDIT if number % 2 else PUSH, "main")
            await settle(pilot)
            assert body(app), seen(app)
            app.clock.now += 1
        assert [ask_id for ask_id, _, _ in app.answers] == [f"q{number}" for number in range(1, 7)]


class Cover(ModalScreen[None]):
    """Something over the conversation."""


async def test_what_is_asked_beneath_another_screen_is_whole_when_that_goes() -> None:
    async with Chat().run_test(size=(40, 10)) as pilot:
        app = pilot.app
        assert isinstance(app, Chat)
        panel = app.panel
        app.push_screen(Cover())
        await settle(pilot)
        panel.ask("q1", EDIT, "main")
        await settle(pilot)
        app.clock.now += 60
        app.pop_screen()
        await pilot.press("y")
        await settle(pilot)
        assert body(app), seen(app)
        assert app.answers == [], "the quiet half second begins when it can be seen"
        app.clock.now += 1
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]
