"""Commands about plans: make one, look at it, continue it, write it to a file."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Event, Notice, PlanChanged, SubTaskChanged
from ba_tui.core.events.plan_course import PlanCourse, PlanRecord
from ba_tui.core.ports.delegation import Work
from ba_tui.core.ports.plans import Plans
from ba_tui.faces.tui.acts.inventory import inventory_of, needed
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.acts.settings import mode
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.inspector.model import Whole
from ba_tui.resources import save_whole

ENDINGS = {"mermaid": "mmd", "json": "json"}
OPEN = "/plan view (F6) opens it."


async def plan(chat: Actions, argument: str) -> None:
    """A goal is planned; alone it switches plan mode, or says how to open the plan that there is."""
    verb, _, rest = argument.partition(" ")
    if verb == "view" and not rest.strip():
        view(chat, "")
    elif verb == "resume":
        _resume(chat, rest.strip())
    elif verb == "export":
        await _export(chat, rest.strip())
    elif argument.strip():
        _plan(chat, argument.strip())
    elif record := chat.main_area.plans.newest:
        from ba_tui.plotting.plans.signs import counted  # noqa: PLC0415 - few sessions have a plan

        stopped = _stopped(chat, record)
        cure = "/plan resume continues it." if stopped else "/mode plan only switches plan mode."
        chat.activity.hint(f"{counted(record.plan)} of the plan done. {OPEN} {cure}", 8.0)
    else:
        mode(chat, "plan")


def view(chat: Actions, _: str) -> None:
    """The newest plan over the whole screen."""
    from ba_tui.faces.tui.acts.agents import open_agent  # noqa: PLC0415 - most runs never show it
    from ba_tui.faces.tui.plan.screen import PlanScreen  # noqa: PLC0415 - see above

    if any(isinstance(screen, PlanScreen) for screen in chat.ba.screen_stack):
        return
    _newest(chat)
    results = inventory_of(chat).results

    def whole(ref: str) -> Whole | None:
        return Whole(results, ref) if results and ref else None

    def course() -> PlanCourse:
        return chat.main_area.plans

    chat.ba.push_screen(PlanScreen(course, whole, partial(open_agent, chat), live=lambda: chat.turns.busy))


def switch(chat: Actions, _: str) -> None:
    """The plan beside the conversation as a tree or as a graph."""
    if chat.main_area.switch_plan():
        return
    _newest(chat)
    chat.activity.hint("The plan has no room beside the conversation. F6 opens it.")


def _plan(chat: Actions, goal: str) -> None:
    plans = inventory_of(chat).feature(Plans)
    if plans is None:
        # A session without plans of steps: the model plans in words.
        mode(chat, "plan")
        chat.turns.submit(goal)
    else:
        _start(chat, f"/plan {goal}", plans.plan(goal))
    chat.show_facts()


def _start(chat: Actions, prompt: str, work: Work) -> None:
    try:
        if chat.turns.missing:
            raise UsageError(chat.turns.missing, "Connect a model with /setup.")
        chat.turns.watch(chat.session.say(prompt, work))
    except BaError:
        chat.composer.put_back(prompt)
        raise


def _resume(chat: Actions, id: str) -> None:
    plans = needed(inventory_of(chat).feature(Plans), "This session can't carry out plans.")
    record = chat.main_area.plans.find(id) if id else _newest(chat)
    if record is None:
        raise UsageError(f"There is no plan {id!r}.", "/plan resume continues the newest one.")
    _start(chat, "/plan resume", plans.resume(record.plan.id))
    chat.show_facts()


def _newest(chat: Actions) -> PlanRecord:
    record = chat.main_area.plans.newest
    return needed(record, "This session has no plan yet.", "Make one: /plan and what you want to have done.")


async def _export(chat: Actions, argument: str) -> None:
    """``mermaid|json [FILE]``; a file that exists is not overwritten."""
    form, _, name = argument.partition(" ")
    by_name = {".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json"}
    if form not in ENDINGS:
        form, name = by_name.get(Path(argument).suffix, "mermaid" if not argument else ""), argument
    if not form:
        raise UsageError(f"There is no format {argument.split()[0]!r}.", "/plan export mermaid, or json.")
    _newest(chat)
    services, conversation = chat.session.live
    place = name.strip() or f"ba-plan-{conversation.id}.{ENDINGS[form]}"
    path = conversation.cwd / Path(place).expanduser()
    if path.exists():
        raise UsageError(f"{path} already exists.", f"Name another file: /plan export {form} <file>")
    kind = "plan-json" if form == "json" else form
    pieces = await asyncio.to_thread(services.library.export, conversation.id, kind)
    await asyncio.to_thread(save_whole, path, pieces)
    chat.tell(Notice(f"Exported to {path}."))


def _stopped(chat: Actions, record: PlanRecord) -> bool:
    from ba_tui.plotting.plans.signs import can_resume  # noqa: PLC0415 - few sessions have a plan

    return can_resume(record.plan) and not chat.turns.busy


def offer(chat: Actions) -> None:
    """Say that the plan of a session that is opened again was interrupted, and how to continue."""
    plans = inventory_of(chat).feature(Plans)
    if plans and not chat.session.read_only and (line := plans.interrupted()):
        chat.tell(Notice(line))


class PlanProgress:
    """Which step runs, in the line above the input."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        """There is nothing to forget: the plans are the main area's."""

    def apply(self, event: Event) -> None:
        if isinstance(event, PlanChanged | SubTaskChanged):
            self._follow(event)

    def _follow(self, event: PlanChanged | SubTaskChanged) -> None:
        from ba_tui.plotting.plans.signs import done, step_name  # noqa: PLC0415 - few sessions have a plan

        match event:
            case PlanChanged(plan=plan) if not plan.subtasks and plan.state == "proposed":
                self._chat.activity.doing("Planning")
            case PlanChanged(plan=plan) if plan.state == "running" and not done(plan):
                self._chat.activity.hint(f"The plan has {len(plan.subtasks)} steps. {OPEN}", 3.0)
            case SubTaskChanged(plan=id, subtask=step) if step.status == "executing":
                record = self._chat.main_area.plans.find(id)
                total = len(record.plan.subtasks) if record else 0
                number = min(total, done(record.plan) + 1) if record else 0
                self._chat.activity.doing(f"Step {number} of {total}: {step_name(step)}")
            case _:
                pass


PLANS = Room(
    {
        SlashCommand("plan", "Plan a goal and carry it out; alone: plan mode", "[goal|view|resume|export]"): plan,
        SlashCommand("plan-view", "Open the newest plan", keys="f6", slash=False): view,
        SlashCommand("plan-switch", "Plan in the side panel: tree or graph", keys="f8", slash=False): switch,
    },
    panes=(PlanProgress,),
)
