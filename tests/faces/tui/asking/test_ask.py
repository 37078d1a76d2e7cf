"""The approval panel: wording, keys, the quiet half second, the queue, and what each answer sends back."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.results import CommandText, Diff
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.diff import DiffScreen
from ba_tui.faces.tui.widgets.ask import AskPanel

PUSH = Question(
    "permission",
    "Run this command?",
    tool="shell",
    args={"command": "git push\norigin main", "timeout": 60},
    preview=CommandText("git push\norigin main"),
    reason="no rule allows git push",
    risks=("runs a command", "network"),
    rule="shell(git push)",
)
REMOVE = Question(
    "permission", "Run this command?", tool="shell", args={"command": "rm -rf x"}, preview=CommandText("rm -rf x"),
    risks=("destructive",),
)  # fmt: skip
EDIT = Question(
    "permission",
    "Make this edit?",
    tool="edit_file",
    args={"path": "a.py", "old_string": "one", "new_string": "two"},
    preview=Diff("a.py", "zero\none\n", "zero\ntwo\n"),
    risks=("writes",),
    rule="edit_file(a.py)",
)
WHICH = Question("choice", "Which one?", options=(Option("Red", "like fire"), Option("Blue")))
SEVERAL = Question("choice", "Which ones?", options=(Option("Red"), Option("Blue"), Option("Green")), multiple=True)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Chat(App[None]):
    CSS = "VerticalScroll { height: 1fr; } Input#prompt { height: 1; border: none; }"

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.answers: list[tuple[str, Reply, bool]] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="talk"):
            yield Static("\n".join(f"line {n}" for n in range(200)))
        yield AskPanel(clock=self.clock)
        yield Input(id="prompt")

    def on_mount(self) -> None:
        self.query_one("#prompt", Input).focus()

    def on_ask_panel_answered(self, event: AskPanel.Answered) -> None:
        self.answers.append((event.ask_id, event.reply, event.interrupt))

    @property
    def panel(self) -> AskPanel:
        return self.query_one(AskPanel)


async def settle(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def asked(pilot: Pilot[None], *questions: Question, agent: str = "main") -> Chat:
    """The app with the questions asked and the quiet half second over."""
    app = pilot.app
    assert isinstance(app, Chat)
    for number, question in enumerate(questions, 1):
        app.panel.ask(f"q{number}", question, agent)
    await settle(pilot)
    app.clock.now += 1
    return app


def seen(app: Chat) -> str:
    """Every line of the screen."""
    size = app.size
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips[: size.height])


KEYS: list[tuple[list[str], Reply, bool]] = [
    (["1"], Reply("once"), False),
    (["y"], Reply("once"), False),
    (["enter"], Reply("once"), False),
    (["2"], Reply("session", rule="shell(git push)"), False),
    (["s"], Reply("session", rule="shell(git push)"), False),
    (["down", "enter"], Reply("session", rule="shell(git push)"), False),
    (["3", "enter"], Reply("always", rule="shell(git push)"), False),
    (["a", "enter"], Reply("always", rule="shell(git push)"), False),
    (["down", "down", "enter", "enter"], Reply("always", rule="shell(git push)"), False),
    (["4"], Reply("deny"), False),
    (["n"], Reply("deny"), False),
    (["up", "up", "enter"], Reply("deny"), False),
    (["escape"], Reply("deny"), True),
    (["tab", *"use ", "p", "r", "enter"], Reply("deny", "use pr"), False),
    (["up", "enter", *"no", "enter"], Reply("deny", "no"), False),
    (["a", "escape", "y"], Reply("once"), False),
    (["tab", "x", "escape", "n"], Reply("deny"), False),
]


async def test_every_key_of_a_permission() -> None:
    async with Chat().run_test() as pilot:
        for keys, reply, interrupt in KEYS:
            app = await asked(pilot, PUSH)
            await pilot.press(*keys)
            await settle(pilot)
            assert app.answers == [("q1", reply, interrupt)], keys
            assert not app.panel.display, keys
            app.answers.clear()


async def test_keys_are_ignored_in_the_first_half_second() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        app.clock.now -= 0.6
        await pilot.press("y", "enter", "escape", "4", "tab")
        await settle(pilot)
        assert app.answers == []
        app.clock.now += 0.2
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]


async def test_the_next_question_has_its_own_half_second() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH, REMOVE)
        await pilot.press("y")
        await settle(pilot)
        await pilot.press("y", "1")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]
        assert app.panel.waiting == 1


async def test_a_queue_is_counted_and_answered_in_order() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH, EDIT, REMOVE)
        assert "Run this command? · 1 of 3" in seen(app)
        await pilot.press("y")
        await settle(pilot)
        assert "Make this edit? · 2 of 3" in seen(app)
        app.panel.withdraw("q3")
        await settle(pilot)
        assert "Make this edit? · 2 of 2" in seen(app)
        app.clock.now += 1
        await pilot.press("n")
        await settle(pilot)
        assert [ask_id for ask_id, _, _ in app.answers] == ["q1", "q2"]
        assert not app.panel.display


async def test_withdrawing_shows_the_next_or_goes_away_without_an_answer() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH, EDIT)
        app.panel.withdraw("q1")
        await settle(pilot)
        assert "Make this edit?" in seen(app)
        app.panel.withdraw_all()
        await settle(pilot)
        assert not app.panel.display
        assert app.answers == []


async def test_the_focus_goes_back_to_where_it_was() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        assert app.panel.has_focus_within
        await pilot.press("y")
        await settle(pilot)
        assert app.focused is app.query_one("#prompt")


async def test_the_default_of_a_destructive_call_is_no() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, REMOVE)
        await pilot.press("2", "3", "s", "a", "r")
        await settle(pilot)
        assert app.answers == [], "there is no rule to remember"
        await pilot.press("enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("deny"), False)]


async def test_the_rule_can_be_edited_and_is_confirmed() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("a")
        await settle(pilot)
        assert "Always in this project:" in seen(app)
        await pilot.press("r", "end", "backspace", *" o)", "enter")
        await settle(pilot)
        assert app.answers == []
        assert "shell(git push o)" in seen(app)
        await pilot.press("enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("always", rule="shell(git push o)"), False)]


async def test_what_is_no_rule_is_said_and_nothing_is_sent() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("r", "end", *"((", "enter")
        await settle(pilot)
        assert "A rule reads tool(pattern)" in seen(app)
        assert app.answers == []


async def test_a_rule_too_long_for_its_row_is_shown_whole_before_the_session_takes_it() -> None:
    rule = f"shell({'x' * 400})"
    async with Chat().run_test() as pilot:
        app = await asked(pilot, Question("permission", "Run?", tool="shell", args={"command": "x"}, rule=rule))
        await pilot.press("s")
        await settle(pilot)
        assert app.answers == []
        assert seen(app).count("x") >= 400
        await pilot.press("enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("session", rule=rule), False)]


async def test_the_command_alone_is_edited() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("e")
        await settle(pilot)
        assert app.query_one(TextArea).text == "git push\norigin main"
        assert not app.query_one("#ask-body").display
        await pilot.press("!", "tab", "ctrl+s")
        await settle(pilot)
        [(_, reply, _)] = app.answers
        assert reply.choice == "once"
        assert reply.edited is not None
        assert reply.edited["command"].startswith("git push\norigin main!")
        assert reply.edited["timeout"] == 60


async def test_arguments_are_edited_as_json_and_faults_say_where() -> None:
    question = Question("permission", "Fetch?", tool="web", args={"url": "a", "depth": 1})
    async with Chat().run_test() as pilot:
        app = await asked(pilot, question)
        await pilot.press("e")
        await settle(pilot)
        area = app.query_one(TextArea)
        area.text = '{\n  "url": "b",\n  "depth": }'
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert "Line 3, column 12" in seen(app)
        await pilot.press("escape")
        await settle(pilot)
        assert not app.query(TextArea)
        await pilot.press("e")
        await settle(pilot)
        area = app.query_one(TextArea)
        assert '"url": "b"' in area.text, "what was typed is still there"
        area.text = '{"url": "b", "depth": 2}'
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once", edited={"url": "b", "depth": 2}), False)]


async def test_arguments_left_as_they_were_are_no_edit() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("e", "ctrl+s")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]


@pytest.mark.parametrize(("question", "screen"), [(EDIT, DiffScreen), (PUSH, InspectorScreen)])
async def test_the_full_screen_comes_and_goes(question: Question, screen: type[ModalScreen[object]]) -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, question)
        await pilot.press("d")
        await settle(pilot)
        assert isinstance(app.screen, screen)
        await pilot.press("escape")
        await settle(pilot)
        assert not isinstance(app.screen, screen)
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]


async def test_the_full_screen_goes_when_the_question_does() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("d")
        await settle(pilot)
        app.screen_stack[0].query_one(AskPanel).withdraw("q1")
        await settle(pilot)
        assert not isinstance(app.screen, InspectorScreen)


async def test_words_are_kept_when_they_are_left() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.press("tab", "enter")
        await settle(pilot)
        assert app.answers == [], "no words, no answer"
        await pilot.press(*"abc", "escape", "tab", "enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("deny", "abc"), False)]


OTHER_KEYS: list[tuple[Question, list[str], Reply, bool]] = [
    (WHICH, ["2"], Reply("text", "Blue"), False),
    (WHICH, ["down", "enter"], Reply("text", "Blue"), False),
    (WHICH, ["w", *"none", "enter"], Reply("text", "none"), False),
    (WHICH, ["escape"], Reply("deny"), True),
    (SEVERAL, ["1", "3", "enter"], Reply("text", "Red\nGreen"), False),
    (SEVERAL, ["space", "down", "space", "space", "enter"], Reply("text", "Red"), False),
    (SEVERAL, ["down", "enter"], Reply("text", "Blue"), False),
    (SEVERAL, ["2", "w", *"x", "enter"], Reply("text", "Blue\nx"), False),
    (Question("choice", "What name?"), [*"why", "enter"], Reply("text", "why"), False),
    (Question("choice", "What name?"), ["enter", *"d", "enter"], Reply("text", "d"), False),
    (Question("continue", "Go on?"), ["enter"], Reply("once"), False),
    (Question("continue", "Go on?"), ["2"], Reply("deny"), False),
    (Question("continue", "Go on?"), ["escape"], Reply("deny"), True),
]


async def test_every_key_of_other_questions() -> None:
    async with Chat().run_test() as pilot:
        for question, keys, reply, interrupt in OTHER_KEYS:
            app = await asked(pilot, question)
            await pilot.press(*keys)
            await settle(pilot)
            assert app.answers == [("q1", reply, interrupt)], (question.text, keys)
            app.answers.clear()


async def test_a_click_answers() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, PUSH)
        await pilot.click("#ask-answers", offset=(10, 3))
        await settle(pilot)
        assert app.answers == [("q1", Reply("deny"), False)]


async def test_the_conversation_scrolls_while_a_question_waits() -> None:
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, PUSH)
        talk = app.query_one("#talk")
        talk.focus()
        await pilot.press("pagedown")
        await settle(pilot)
        assert talk.scroll_offset.y > 0
