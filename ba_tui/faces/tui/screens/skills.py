"""The skill browser: every skill that was found, how it stands, how large it is; one of them in full on Enter.

Which skills there are and what can be done with them is the inventory's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.skills import SkillLine, Skills, SkillState
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of
from ba_tui.faces.tui.screens.skill_page import MEANING, SkillPage

KEYS = "Enter opens · Ctrl+A start · Ctrl+E end · Ctrl+S on/off · Esc closes"
STATES: dict[SkillState, str] = {
    "active": "active",
    "waiting": "starts next",
    "on": "on",
    "off": "off",
    "broken": "broken",
    "shadowed": "shadowed",
}


class SkillBrowser(Picker):
    """Typing finds by name, state, source and words of the description."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+a", "start", "Start it", priority=True),
        Binding("ctrl+e", "end", "End it", priority=True),
        Binding("ctrl+s", "switch", "On or off", priority=True),
    ]

    def __init__(self, skills: Skills) -> None:
        super().__init__("Skills", (), keys=KEYS)
        self.empty = "Looking …"
        self._skills = skills
        self._lines: dict[str, SkillLine] = {}

    def on_mount(self) -> None:
        self.reload()

    def reload(self) -> None:
        self.run_worker(self._load, group="skills", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        try:
            lines = await asyncio.to_thread(self._skills.lines)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._lines = {f"{place}:{skill.id}": skill for place, skill in enumerate(lines)}
        self.empty = "No skills were found. ba skills new NAME makes one."
        self.choices = [_choice(id, skill) for id, skill in self._lines.items()]
        states = [skill.state for skill in lines]
        active, broken = states.count("active") + states.count("waiting"), states.count("broken")
        parts = [
            count(len(lines), "skill"),
            f"{active} active" if active else "",
            f"{states.count('off')} off" if "off" in states else "",
            f"{broken} can't be used" if broken else "",
        ]
        self.query_one(".title", Static).update(", ".join(filter(None, parts)))
        self.refill()

    @property
    def _here(self) -> SkillLine | None:
        return self._lines.get(self.highlighted or "")

    def choose(self, id: str) -> None:
        if id in self._lines:
            self._open(self._lines[id])

    def _open(self, skill: SkillLine, *, starting: bool = False) -> None:
        app_of(self).push_screen(SkillPage(self._skills, skill, self.reload, starting=starting))

    def action_start(self) -> None:
        if skill := self._here:
            self._open(skill, starting=True)

    def action_end(self) -> None:
        if skill := self._here:
            self._do(lambda: self._skills.end(skill.id), f"{skill.id} ends with your next message.")

    def action_switch(self) -> None:
        skill = self._here
        if skill is None:
            return
        if skill.state not in {"on", "off"}:
            self.say(f"{skill.id} can't be switched now. {MEANING[skill.state]}")
            return
        on = skill.state == "off"
        told = f"{skill.id} is {'on' if on else 'off'} for the model in this session."
        self._do(lambda: self._skills.switch(skill.id, on=on), told)

    def _do(self, work: Callable[[], None], told: str) -> None:
        self.run_worker(partial(self._done, work, told), group="skill", exit_on_error=False)

    async def _done(self, work: Callable[[], None], told: str) -> None:
        try:
            await asyncio.to_thread(work)
        except BaError as error:
            self.say(error.with_hint)
            return
        await self._load()
        self.say(told)


def _choice(id: str, skill: SkillLine) -> PickerChoice:
    summary = " ".join(skill.description.split())
    wrong = skill.trouble or " · ".join(skill.warnings)
    below = f"! {wrong}" if wrong else summary
    size = f"{short_count(skill.tokens)} tokens" if skill.tokens else ""
    current = skill.state in {"active", "waiting"}
    return PickerChoice(
        id, (skill.id, STATES[skill.state], skill.source, size), below, current, f"{summary} {skill.path}"
    )
