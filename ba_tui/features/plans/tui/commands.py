"""Commands for plans: make, view, resume and export one."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Event, Notice, PlanChanged, SubTaskChanged
from ba_tui.core.plan_folds import PlanCourse, PlanTimeline
from ba_tui.core.ports.agents import Work
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.acts.sessions import mode
from ba_tui.faces.tui.inspector.model import Whole
from ba_tui.features.plans.session import PlanSession
from ba_tui.resources import save_whole

ENDINGS = {"mermaid": "mmd", "json": "json"}
OPEN = "/plan view (F6) opens it."


async def plan(chat: Actions, argument: str) -> None:
    """Plan a goal; without a goal switch plan mode, or say how to open the existing plan."""
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
        from ba_tui.plotting.plan_signs import counted  # noqa: PLC0415 - few sessions have a plan

        stopped = _stopped(chat, record)
        cure = "/plan resume continues it." if stopped else "/mode plan only switches plan mode."
        chat.activity.hint(f"{counted(record.plan)} of the plan done. {OPEN} {cure}", 8.0)
    else:
        mode(chat, "plan")


def view(chat: Actions, _: str) -> None:
    """Show the newest plan over the whole screen."""
    from ba_tui.features.plans.tui.screen import PlanScreen  # noqa: PLC0415 - most runs never show it

    if any(isinstance(screen, PlanScreen) for screen in chat.ba.screen_stack):
        return
    _newest(chat)
    results = inventory_of(chat).results

    def whole(ref: str) -> Whole | None:
        return Whole(results, ref) if results and ref else None

    def course() -> PlanCourse:
        return chat.main_area.plans

    chat.ba.push_screen(PlanScreen(course, whole, partial(chat.call_command, "agents"), live=lambda: chat.turns.busy))


def switch(chat: Actions, _: str) -> None:
    """Switch the plan in the side panel between tree and graph."""
    if chat.main_area.switch_plan():
        return
    _newest(chat)
    chat.activity.hint("The plan has no room beside the conversation. F6 opens it.")


def _plan(chat: Actions, goal: str) -> None:
    plans = inventory_of(chat).feature(PlanSession)
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
    plans = needed(inventory_of(chat).feature(PlanSession), "This session can't carry out plans.")
    record = chat.main_area.plans.find(id) if id else _newest(chat)
    if record is None:
        raise UsageError(f"There is no plan {id!r}.", "/plan resume continues the newest one.")
    _start(chat, "/plan resume", plans.resume(record.plan.id))
    chat.show_facts()


def _newest(chat: Actions) -> PlanTimeline:
    record = chat.main_area.plans.newest
    return needed(record, "This session has no plan yet.", "Make one: /plan and what you want to have done.")


async def _export(chat: Actions, argument: str) -> None:
    """Export the plan: ``mermaid|json [FILE]``; an existing file is not overwritten."""
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


def _stopped(chat: Actions, record: PlanTimeline) -> bool:
    from ba_tui.plotting.plan_signs import can_resume  # noqa: PLC0415 - few sessions have a plan

    return can_resume(record.plan) and not chat.turns.busy


def offer(chat: Actions) -> None:
    """Report that the plan of a resumed session was interrupted, and how to continue it."""
    plans = inventory_of(chat).feature(PlanSession)
    if plans and not chat.session.read_only and (line := plans.interrupted()):
        chat.tell(Notice(line))


class PlanProgress:
    """The running step, in the line above the input."""

    def __init__(self, chat: Actions) -> None:
        self._chat = chat

    def reset(self) -> None:
        """Keep the state: it belongs to the main area."""

    def apply(self, event: Event) -> None:
        if isinstance(event, PlanChanged | SubTaskChanged):
            self._follow(event)

    def _follow(self, event: PlanChanged | SubTaskChanged) -> None:
        from ba_tui.plotting.plan_signs import done, step_name  # noqa: PLC0415 - few sessions have a plan

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
