"""One skill in full: how it stands, what lies in its folder, its instructions as they read. Keys start, end, check it.

What a skill is and what becomes of it is the business of ``core.skills.Skills``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.skills import SkillLine, Skills, SkillState
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.inspector.rows import painted
from ba_tui.faces.tui.screens.picker import LOW
from ba_tui.faces.tui.transcript.page import MarkdownPage
from ba_tui.faces.tui.transcript.view import TranscriptView
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

MEANING: dict[SkillState, str] = {
    "active": "Active: the model follows its instructions.",
    "waiting": "It applies from your next message.",
    "on": "On: you or the model can start it.",
    "off": "Off: hidden from the model; you can start it.",
    "broken": "Broken: it can't be used.",
    "shadowed": "Hidden by another skill of that name.",
}
LABEL = 9
MANY = 40
_SIGNS = regex(r"([\\`*_{}\[\]<>()#+\-.!|~&])")


@frozen
class Checked:
    """What the rules of the format say of a skill."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class SkillPage(ModalScreen[None]):
    """``changed`` is called when something was done, so that lists can be made anew."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", priority=True),
        Binding("q", "close", "Close", show=False),
        Binding("a", "start", "Start it"),
        Binding("e", "end", "End it"),
        Binding("v", "check", "Check it"),
        Binding("s", "switch", "On or off"),
    ]

    def __init__(
        self, skills: Skills, skill: SkillLine, changed: Callable[[], None], *, starting: bool = False
    ) -> None:
        super().__init__(classes="picker")
        self._skills = skills
        self._skill = skill
        self._changed = changed
        self._starting = starting
        self._body = ""
        self._checked: Checked | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static(painted(self._skill.id), classes="title", markup=False)
            yield MarkdownPage()
            yield ClusterInput(placeholder="Parameters, if it takes any", compact=True, select_on_focus=False)
            yield Static(classes="keys", markup=False)

    def on_mount(self) -> None:
        given = self.query_one(Input)
        given.cursor_blink = given.display = False
        self.query_one(MarkdownPage).focus()
        self._say()
        self.run_worker(self._load, group="page", exit_on_error=False)
        if self._starting:
            self.action_start()

    async def _load(self) -> None:
        try:
            self._body = await asyncio.to_thread(self._skills.body, self._skill.id)
        except BaError as error:
            self._body = "" if self._skill.trouble else plain(error.with_hint)
        self._show()

    def _show(self) -> None:
        self.query_one(MarkdownPage).read(page(self._skill, self._body, self._checked))

    def _say(self, told: str = "") -> None:
        state = self._skill.state
        able = state not in {"broken", "shadowed"}
        parts = [
            "a starts it" if able else "",
            "e ends it" if state in {"active", "waiting"} else "",
            "s off" if state == "on" else "s on" if state == "off" else "",
            "v checks it",
            "Esc closes",
        ]
        self.query_one(".keys", Static).update(painted(told) if told else " · ".join(filter(None, parts)))

    @property
    def _asking(self) -> bool:
        return self.query_one(Input).display

    def action_close(self) -> None:
        if self._asking:
            self._ask(on=False)
        else:
            self.dismiss()

    def _ask(self, *, on: bool) -> None:
        given = self.query_one(Input)
        given.display = on
        (given if on else self.query_one(MarkdownPage)).focus()
        self._say("Enter start · Esc cancel" if on else "")

    def action_start(self) -> None:
        if self._skill.state in {"broken", "shadowed"}:
            self._say(f"It can't be started. {MEANING[self._skill.state]}")
        else:
            self._ask(on=True)

    @on(Input.Submitted)
    def _given(self, event: Input.Submitted) -> None:
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
            self._say(f"It can't be switched now. {MEANING[state]}")
            return
        told = f"{id} is {'off' if state == 'on' else 'on'} for the model in this session."
        self._do(lambda: self._skills.switch(id, on=state == "off"), told)

    def action_check(self) -> None:
        self.run_worker(self._check, group="check", exclusive=True, exit_on_error=False)

    async def _check(self) -> None:
        try:
            errors, warnings = await asyncio.to_thread(self._skills.check, self._skill.id)
        except BaError as error:
            self._say(error.with_hint)
            return
        self._checked = Checked(tuple(errors), tuple(warnings))
        self._say(verdict(self._checked))
        self._show()

    def _do(self, work: Callable[[], None], told: str) -> None:
        self.run_worker(partial(self._done, work, told), group="skill", exit_on_error=False)

    async def _done(self, work: Callable[[], None], told: str) -> None:
        try:
            await asyncio.to_thread(work)
            lines = await asyncio.to_thread(self._skills.lines)
        except BaError as error:
            self._say(error.with_hint)
            return
        same = (line for line in lines if (line.id, line.path) == (self._skill.id, self._skill.path))
        self._skill = next(same, self._skill)
        self._show()
        self._say(told)
        self._changed()

    @on(TranscriptView.CopyRequested)
    def _copy(self, event: TranscriptView.CopyRequested) -> None:
        event.stop()
        self.post_message(CopyToClipboard(self._body))

    @on(MarkdownPage.LinkFollowed)
    def _followed(self, event: MarkdownPage.LinkFollowed) -> None:
        """What a skill names is not opened; the person gets the address."""
        event.stop()
        self.post_message(CopyToClipboard(event.address))
        self._say(f"Copied: {event.address}")

    @on(TranscriptView.Opened)
    def _opened(self, event: TranscriptView.Opened) -> None:
        """It is open already."""
        event.stop()


def verdict(checked: Checked) -> str:
    """In a few words."""
    errors, warnings = len(checked.errors), len(checked.warnings)
    odd = f", {count(warnings, 'warning')}" if warnings else ""
    if not errors:
        return f"It is valid{odd}."
    return f"It is not valid: {count(errors, 'error')}{odd}."


def page(skill: SkillLine, body: str, checked: Checked | None = None) -> str:
    """The page as Markdown; only ``body`` may bring signs of its own."""
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
    lines = [f"**{name}**{' ' * (LABEL - len(name))}{plain(text)}" for name, text in facts]
    parts = ["\\\n".join(lines)]
    if checked:
        parts.append(f"**Checked by the rules of the format:** {plain(verdict(checked))}")
        parts += [listed("Errors", checked.errors), listed("Warnings", checked.warnings)]
    if skill.trouble:
        parts.append(f"**Broken:** {plain(skill.trouble)}")
    parts.append(plain(skill.description))
    parts += [listed("Warnings", skill.warnings), listed("Files beside SKILL.md", skill.files)]
    if body.strip():
        parts += ["---", body]
    return "\n\n".join(part for part in parts if part)


def listed(heading: str, items: Sequence[str]) -> str:
    """``items`` as a list in Markdown; empty for none."""
    if not items:
        return ""
    shown = [f"- {plain(item)}" for item in items[:MANY]]
    more = [f"- and {len(items) - MANY} more"] if len(items) > MANY else []
    return "\n".join([f"**{heading}**", "", *shown, *more])


def plain(text: str) -> str:
    """``text`` so that Markdown shows it as it is, on one line."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))
