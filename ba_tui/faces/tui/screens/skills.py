"""The skill browser: all skills with state and size, and a page for one skill with its files and instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from ba_tui.core.errors import BaError
from ba_tui.core.ports.context import SkillLine, Skills, SkillState
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import MarkdownSheet, app_of, bullets, fact_lines, plain
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

MEANING: dict[SkillState, str] = {
    "active": "Active: the model follows its instructions.",
    "waiting": "It applies from your next message.",
    "on": "On: you or the model can start it.",
    "off": "Off: hidden from the model; you can start it.",
    "broken": "Broken: it can't be used.",
    "shadowed": "Hidden by another skill of that name.",
}
NOT_STARTED = frozenset({"broken", "shadowed"})


@frozen
class SkillCheck:
    """Faults of a skill by the rules of the format."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class SkillPage(MarkdownSheet):
    """One skill. ``changed`` is called after each change, to reload lists."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", show=False, priority=True),
        Binding("a", "start", "Start it"),
        Binding("e", "end", "End it"),
        Binding("v", "check", "Check it"),
        Binding("s", "switch", "On or off"),
    ]

    def __init__(
        self, skills: Skills, skill: SkillLine, changed: Callable[[], None], *, starting: bool = False
    ) -> None:
        super().__init__(skill.id)
        self._skills = skills
        self._skill = skill
        self._changed = changed
        self._starting = starting
        self._checked: SkillCheck | None = None

    def body(self) -> ComposeResult:
        yield MarkdownPage()
        parameters = ClusterInput(placeholder="Parameters, if it takes any", compact=True, select_on_focus=False)
        parameters.cursor_blink = parameters.display = False
        yield parameters

    def on_mount(self) -> None:
        self.say("")
        self.run_worker(self._load, group="page", exit_on_error=False)
        if self._starting:
            # After the base class has put the focus on the page.
            self.call_later(self.action_start)

    async def _load(self) -> None:
        try:
            self.text = await asyncio.to_thread(self._skills.body, self._skill.id)
        except BaError as error:
            self.text = "" if self._skill.trouble else plain(error.with_hint)
        self._show()

    def _show(self) -> None:
        self.read(page(self._skill, self.text, self._checked))

    def say(self, text: str, style: str = "") -> None:
        """Show a message, else the keys that have an effect now."""
        state = self._skill.state
        keys = (
            "a start" if state not in NOT_STARTED else "",
            "e end" if state in {"active", "waiting"} else "",
            "s off" if state == "on" else "s on" if state == "off" else "",
            "v check",
            "Esc close",
        )
        self.keys = " · ".join(filter(None, keys))
        super().say(text, style)

    @property
    def _asking(self) -> bool:
        return self.query_one(Input).display

    def action_close(self) -> None:
        if self._asking:
            self._ask(on=False)
        else:
            self.dismiss(None)

    def _ask(self, *, on: bool) -> None:
        parameters = self.query_one(Input)
        parameters.display = on
        (parameters if on else self.query_one(MarkdownPage)).focus()
        self.say("Enter start · Esc cancel" if on else "")

    def action_start(self) -> None:
        if self._skill.state in NOT_STARTED:
            self.say(f"It can't be started. {MEANING[self._skill.state]}")
        else:
            self._ask(on=True)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._ask(on=False)
        id, words = self._skill.id, event.value.strip()
        event.input.value = ""
        self._do(lambda: self._skills.activate(id, words), f"{id} applies from your next message.")

    def action_end(self) -> None:
        id = self._skill.id
        self._do(lambda: self._skills.end(id), f"{id} ends with your next message.")

    def action_switch(self) -> None:
        id, state = self._skill.id, self._skill.state
        if state not in {"on", "off"}:
            self.say(f"It can't be switched now. {MEANING[state]}")
            return
        told = f"{id} is {'off' if state == 'on' else 'on'} for the model in this session."
        self._do(lambda: self._skills.switch(id, on=state == "off"), told)

    def action_check(self) -> None:
        self.run_worker(self._check, group="check", exclusive=True, exit_on_error=False)

    async def _check(self) -> None:
        try:
            errors, warnings = await asyncio.to_thread(self._skills.check, self._skill.id)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._checked = SkillCheck(tuple(errors), tuple(warnings))
        self.say(verdict(self._checked))
        self._show()

    def _do(self, work: Callable[[], None], told: str) -> None:
        self.run_worker(partial(self._done, work, told), group="skill", exit_on_error=False)

    async def _done(self, work: Callable[[], None], told: str) -> None:
        try:
            await asyncio.to_thread(work)
            lines = await asyncio.to_thread(self._skills.lines)
        except BaError as error:
            self.say(error.with_hint)
            return
        same = (line for line in lines if (line.id, line.path) == (self._skill.id, self._skill.path))
        self._skill = next(same, self._skill)
        self._show()
        self.say(told)
        self._changed()


def verdict(checked: SkillCheck) -> str:
    """Return the result of a check in a few words."""
    errors, warnings = len(checked.errors), len(checked.warnings)
    odd = f", {count(warnings, 'warning')}" if warnings else ""
    if not errors:
        return f"It is valid{odd}."
    return f"It is not valid: {count(errors, 'error')}{odd}."


def page(skill: SkillLine, body: str, checked: SkillCheck | None = None) -> str:
    """Return the page as Markdown; only ``body`` may contain markup."""
    facts = [("State", MEANING[skill.state]), ("Source", f"{skill.source} · {skill.path}")]
    if skill.tokens:
        facts.append(("Size", f"about {skill.tokens:,} tokens once it is active"))
    if skill.tools:
        how = "used without asking, as you allowed" if skill.confirmed else "you are asked once, when it starts"
        facts.append(("Tools", f"{', '.join(skill.tools)} ({how})"))
    if skill.for_models:
        facts.append(("Started", "by models only"))
    if skill.model:
        facts.append(("Model", f"{skill.model}, while it is active"))
    parts = [fact_lines(facts)]
    if checked:
        parts.append(f"**Checked by the rules of the format:** {plain(verdict(checked))}")
        parts += [bullets("Errors", checked.errors), bullets("Warnings", checked.warnings)]
    if skill.trouble:
        parts.append(f"**Broken:** {plain(skill.trouble)}")
    parts.append(plain(skill.description))
    parts += [bullets("Warnings", skill.warnings), bullets("Files beside SKILL.md", skill.files)]
    if body.strip():
        parts += ["---", body]
    return "\n\n".join(part for part in parts if part)


STATES: dict[SkillState, str] = {
    "active": "active",
    "waiting": "starts next",
    "on": "on",
    "off": "off",
    "broken": "broken",
    "shadowed": "shadowed",
}


class SkillBrowser(ListScreen[SkillLine]):
    """Typing finds by name, state, source and words of the description."""

    ENTER: ClassVar[str] = "open"
    EMPTY: ClassVar[str] = "No skills were found. ba skills new NAME makes one."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a", "start", "start", priority=True),
        Binding("ctrl+e", "end", "end", priority=True),
        Binding("ctrl+s", "switch", "on/off", priority=True),
    ]

    def __init__(self, skills: Skills) -> None:
        super().__init__("Skills")
        self._skills = skills

    def read(self) -> ListContent[SkillLine]:
        skills = self._skills.lines()
        states = [skill.state for skill in skills]
        active, broken = states.count("active") + states.count("waiting"), states.count("broken")
        parts = [
            count(len(skills), "skill"),
            f"{active} active" if active else "",
            f"{states.count('off')} off" if "off" in states else "",
            f"{broken} can't be used" if broken else "",
        ]
        return ListContent(list(map(_skill_row, range(len(skills)), skills)), ", ".join(filter(None, parts)))

    def choose(self, row: ListRow[SkillLine]) -> None:
        self._open(row.value)

    def _open(self, skill: SkillLine | None, *, starting: bool = False) -> None:
        if skill:
            app_of(self).push_screen(SkillPage(self._skills, skill, self.action_reload, starting=starting))

    def action_start(self) -> None:
        self._open(self.item, starting=True)

    def action_end(self) -> None:
        if skill := self.item:
            done = f"{skill.id} ends with your next message."
            self.perform(lambda: asyncio.to_thread(self._skills.end, skill.id), done)

    def action_switch(self) -> None:
        skill = self.item
        if skill is None:
            return
        if skill.state not in {"on", "off"}:
            self.say(f"{skill.id} can't be switched now. {MEANING[skill.state]}")
            return
        on = skill.state == "off"
        self.perform(
            lambda: asyncio.to_thread(self._skills.switch, skill.id, on=on),
            f"{skill.id} is {'on' if on else 'off'} for the model in this session.",
        )


def _skill_row(place: int, skill: SkillLine) -> ListRow[SkillLine]:
    summary = " ".join(skill.description.split())
    wrong = skill.trouble or " · ".join(skill.warnings)
    size = f"{short_count(skill.tokens)} tokens" if skill.tokens else ""
    return ListRow(
        f"{place}:{skill.id}",
        (skill.id, STATES[skill.state], skill.source, size),
        f"! {wrong}" if wrong else summary,
        current=skill.state in {"active", "waiting"},
        keywords=f"{summary} {skill.path}",
        value=skill,
    )


def skills(chat: Actions, __: str) -> None:
    chat.ba.push_screen(SkillBrowser(needed(inventory_of(chat).skills, "This session has no skills.")))
