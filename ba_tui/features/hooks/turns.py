"""Fire the hooks of a conversation: on prompts, questions, answers, compression, start and end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ba_tui.core.agent import CONTINUATIONS
from ba_tui.core.errors import PromptRefused, StopTurn
from ba_tui.core.events import Asked, Compressed, Event, Notice, SideRequest, Steered
from ba_tui.core.messages import Message, reminder
from ba_tui.core.questions import Question
from ba_tui.core.text.wording import sentence
from ba_tui.core.turn import Branch
from ba_tui.features.hooks.answers import HookVerdict
from ba_tui.features.hooks.runner import AgentHooks, HookEvent, Hooks

MAIN = "main"
CLOSE_SECONDS = 5.0
"""Time for hooks when a session closes, in seconds."""


class HookTurns:
    """core.agent.Interceptor for the hooks of one conversation; ``admit`` returns notes for a prompt."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self._begun = False
        self._compressed: set[str] = set()
        """Agents whose conversation was compressed since their last request."""
        self._untold: list[Notice | SideRequest] = []
        self._running: set[asyncio.Task[None]] = set()

    async def admit(self, prompt: Message, branch: Branch) -> Sequence[Message]:
        """Return notes to send with ``prompt``. Raises PromptRefused: a hook blocks the prompt or ends the turn."""
        words: list[str] = []
        if not self._begun:
            source = "resume" if branch.transcript.messages else "startup"
            words.append((await self._on_start(source, branch)).context)
            self._begun = True
        verdict = await self._fire(HookEvent("user_prompt", {"prompt": prompt.text}), branch)
        if verdict.decision == "deny":
            why = f"A hook blocked the prompt: {sentence(verdict.reason)}"
            raise PromptRefused(why, "Change it and send it again.")
        if verdict.stop is not None:
            raise PromptRefused(f"A hook ended the turn: {verdict.stop}")
        words.append(verdict.context)
        return [_note(text) for text in words if text]

    async def before(self, branch: Branch) -> None:
        """Add notes of hooks before a request: after a compression they may repeat facts that the model must keep.
        Raises StopTurn: a hook ended the turn after a call."""
        late = self.hooks.later()
        for event in (*self._untold, *late.events):
            branch.emit(event)
        self._untold.clear()
        if late.context:
            branch.emit(Steered(_note(late.context)))
        await self._on_agent(branch)
        state = branch.state(AgentHooks)
        if why := state.halt:
            state.halt = ""
            raise StopTurn(f"A hook ended the turn: {why}")
        if branch.name in self._compressed:
            self._compressed.discard(branch.name)
            verdict = await self._on_start("compact", branch)
            if verdict.context:
                branch.emit(Steered(_note(verdict.context)))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Let hooks make the agent continue, a few times in a turn."""
        if branch.waiting:
            return
        event = "stop" if branch.name == MAIN else "subagent_stop"
        names = () if branch.name == MAIN else (_type(branch),)
        if not self.hooks.wanted(event, names):
            return
        state = branch.state(AgentHooks)
        again = state.continued
        fields = {"stop_hook_active": again > 0, "last_assistant_message": reply.text, **_agent(branch)}
        verdict = await self._fire(HookEvent(event, fields, names), branch)
        if verdict.stop is not None:
            raise StopTurn(f"A hook ended the turn: {verdict.stop}")
        if verdict.decision != "deny":
            return
        if again >= CONTINUATIONS:
            text = f"Hooks asked the agent to continue {again + 1} times in a row; the turn ends here."
            branch.emit(Notice(text, "warning", "Make the hook check stop_hook_active."))
            return
        state.continued += 1
        branch.post(reminder(f"A hook of the user does not let you stop yet: {verdict.reason}"))

    def apply(self, event: Event) -> None:
        """core.turn.Listener: fire hooks for a question to the user, and note a compression."""
        match event:
            case Asked(question=question) if self.hooks.wanted("notification", (_kind(question),)):
                self._later(HookEvent("notification", _notification(question), (_kind(question),)))
            case Compressed(strategy=strategy, agent=agent) if strategy != "undo":
                self._compressed.add(agent)
            case _:
                pass

    async def before_compress(self, trigger: str, focus: str = "") -> str | None:
        """Return why the conversation must not be compressed now, or None. ``trigger``: ``manual`` or ``auto``."""
        fields = {"trigger": trigger, "custom_instructions": focus}
        verdict = await self.hooks.fire(HookEvent("pre_compact", fields, (trigger,)))
        self._untold += verdict.events
        if verdict.decision == "deny":
            return verdict.reason
        return verdict.stop

    async def close(self, reason: str = "other") -> None:
        """Fire the hooks on the session's end, with a short limit whatever their timeouts are."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._begun:
            await self.hooks.fire(HookEvent("session_end", {"reason": reason}, (reason,), longest=CLOSE_SECONDS))
        await self.hooks.close()

    async def _on_agent(self, branch: Branch) -> None:
        """Fire the hooks on a sub-agent's start: they can add context but not prevent the agent."""
        state = branch.state(AgentHooks)
        if branch.name == MAIN or state.announced or not self.hooks.wanted("subagent_start", (_type(branch),)):
            return
        state.announced = True
        verdict = await self._fire(HookEvent("subagent_start", _agent(branch), (_type(branch),)), branch)
        if verdict.context:
            branch.emit(Steered(_note(verdict.context)))

    async def _on_start(self, source: str, branch: Branch) -> HookVerdict:
        return await self._fire(HookEvent("session_start", {"source": source}, (source,)), branch)

    async def _fire(self, event: HookEvent, branch: Branch) -> HookVerdict:
        verdict = await self.hooks.fire(replace(event, cwd=branch.transcript.cwd or ""))
        for told in verdict.events:
            branch.emit(told)
        return verdict

    def _later(self, event: HookEvent) -> None:
        """Fire hooks in the background; their output is reported before the next request."""

        async def run() -> None:
            self._untold += (await self.hooks.fire(event)).events

        task = asyncio.get_running_loop().create_task(run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _note(text: str) -> Message:
    return reminder(f"A hook of the user adds:\n{text}")


def _agent(branch: Branch) -> dict[str, Any]:
    """Return the agent in Claude Code's fields."""
    known = {"agent_id": branch.name}
    return known if branch.name == MAIN else {**known, "agent_type": _type(branch)}


def _type(branch: Branch) -> str:
    """Return the type of a sub-agent: ``explore`` for ``main/explore-1``."""
    return branch.name.rpartition("/")[2].rpartition("-")[0]


def _kind(question: Question) -> str:
    return "permission_prompt" if question.kind == "permission" else "elicitation_dialog"


def _notification(question: Question) -> dict[str, Any]:
    what = f"ba needs your permission to use {question.tool}" if question.kind == "permission" else question.text
    return {"message": what, "title": "ba", "notification_type": _kind(question)}
