"""The hooks of a conversation: fired on prompts, questions, answers, compression, start and end; those of an event run
concurrently, and their answers are combined.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ba_tui.core.agent import CONTINUATIONS, AskModel
from ba_tui.core.errors import PromptRefused, StopTurn
from ba_tui.core.events import Asked, Compressed, Event, Notice, SideRequest, Steered
from ba_tui.core.messages import Message, clean_json, reminder
from ba_tui.core.ports.permissions import HookRun
from ba_tui.core.questions import Question
from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.text.wording import sentence
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.hooks.answers import (
    TROUBLES,
    HookAnswer,
    HookVerdict,
    ask_prompt,
    combined,
    hook_run,
    read_answer,
    run_command,
)
from ba_tui.settings import HOOK_EVENTS
from ba_tui.settings.hooks import Dialect, Hook
from ba_tui.tools.claude_calls import ToolTelling

# The condition of a hook, such as ``Bash(git *)``. In doubt the hook runs: it may be one that blocks.

_RULE = regex(r"([\w*.-]+)\s*(?:\((.*)\))?", re.DOTALL)
_PARTS = regex(r"[;&|\n()`]+|\$\(")
_ASSIGNED = regex(r"\A(?:\w+=\S*\s+)+")
_TARGETS = ("command", "file_path", "notebook_path", "path", "url", "pattern", "query", "skill")
_DOMAIN = "domain:"


def may_apply(condition: str, names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Return whether a hook with ``condition`` runs for a call of a tool with ``names`` and the input ``given``."""
    if not condition.strip() or not names:
        return True
    match = _RULE.fullmatch(condition.strip())
    if match is None:
        return True
    tool, pattern = match[1], match[2]
    if not any(fnmatchcase(name, tool) for name in names):
        return False
    target = next((str(given[name]) for name in _TARGETS if name in given), None)
    if not pattern or pattern == "*" or target is None:
        return True
    if pattern.startswith(_DOMAIN):
        host = re.sub(r"^\w+://(?:[^/@]*@)?", "", target).split("/")[0].split(":")[0]
        wanted = pattern.removeprefix(_DOMAIN)
        return fnmatchcase(host, wanted) or host.endswith(f".{wanted}")
    if wildcard_problem(pattern):
        return True
    if "command" in given:
        return any(_begins(part, pattern) for part in (target, *_PARTS.split(target)))
    return fnmatchcase(target, pattern) or fnmatchcase(target, f"*/{pattern.lstrip('./')}")


def _begins(command: str, pattern: str) -> bool:
    command = _ASSIGNED.sub("", command.strip(), 1)
    if pattern.endswith(":*"):
        return command.startswith(pattern.removesuffix(":*"))
    return fnmatchcase(command, pattern) or (pattern.endswith(" *") and command == pattern.removesuffix(" *"))


@frozen
class SessionFacts:
    """Facts that every hook receives. ``environment``: variables for commands, without keys."""

    session: str
    transcript: Path
    cwd: Path
    project: Path
    environment: Mapping[str, str]
    mode: Callable[[], str]


LATE_SECONDS = 1.0
"""Time for background hooks to end when a session closes, in seconds."""
_MODES = {"accept-edits": "acceptEdits", "bypass": "bypassPermissions"}


@frozen
class HookEvent:
    """An event: ba's name of it, its additional fields, and the names for matchers. ``tellings``: the call in question,
    by dialect; several when a call changes several files. ``longest``: the upper limit for the timeout of each hook, in
    seconds."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Sequence[str] = ()
    cwd: str = ""
    longest: float = 600.0
    tellings: Mapping[Dialect, Sequence[ToolTelling]] = field(default_factory=dict[Dialect, Sequence[ToolTelling]])


class AgentHooks:
    """What hooks did to an agent in this turn."""

    def __init__(self) -> None:
        self.halt = ""
        """Why a hook ends the agent before its next request; empty to continue."""
        self.continued = 0
        """How often hooks made it continue."""
        self.announced = False
        """Its start was reported to hooks."""


@frozen
class _Task:
    """A hook to run, with the call that is reported to it."""

    hook: Hook
    telling: ToolTelling | None = None

    def fields(self) -> Mapping[str, Any]:
        if self.telling is None:
            return {}
        name = self.telling.named_for(self.hook)
        return {"tool_name": name, "tool_input": self.telling.input, **self.telling.fields}

    def translated(self, answer: HookAnswer) -> HookAnswer:
        """Return ``answer`` with the changed input as the tool's arguments; an invalid change denies the call."""
        if answer.rewritten is None or self.telling is None:
            return answer
        try:
            return replace(answer, rewritten=self.telling.own(answer.rewritten))
        except (ValueError, TypeError, AttributeError) as error:
            reason = f"{self.hook.label} changed the input in a way that ba can't apply: {error}."
            return replace(answer, decision="deny", reason=reason, rewritten=None)


class Hooks:
    """The hooks of one conversation. ``clean`` prepares their output for a model; ``ask`` asks the small model."""

    def __init__(
        self, hooks: Sequence[Hook], facts: SessionFacts, clean: Callable[[str], str], ask: AskModel | None = None
    ) -> None:
        self._hooks = tuple(hooks)
        self._ask = ask
        self._done: set[Hook] = set()
        """Hooks with ``once`` that have run."""
        self.runs: dict[Hook, HookRun] = {}
        """The last run of each hook."""
        self._late: list[HookAnswer] = []
        self._running: set[asyncio.Task[None]] = set()
        self.facts = facts
        self._clean = clean
        project = str(facts.project)
        self._environment = {**facts.environment, "BA_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}

    def wanted(self, name: str, names: Sequence[str] = ()) -> bool:
        """Return whether a hook matches the event."""
        return any(hook.event == name and hook.matches(names) for hook in self._hooks)

    async def fire(self, event: HookEvent) -> HookVerdict:
        """Run the hooks of an event and combine their answers. Failing hooks raise nothing; cancelling kills all."""
        if not (tasks := self._tasks(event)):
            return HookVerdict()
        self._done.update(task.hook for task in tasks if task.hook.once)
        payloads = await asyncio.to_thread(lambda: [self._payload(event, task) for task in tasks])
        runs = {(task.hook.text, data): (task, data) for task, data in zip(tasks, payloads, strict=True)}
        for task, data in runs.values():
            if task.hook.background:
                self._start(self._run(task, data, event))
        waited = [(task, data) for task, data in runs.values() if not task.hook.background]
        return combined(await asyncio.gather(*(self._run(task, data, event) for task, data in waited)))

    def later(self) -> HookVerdict:
        """Return the answers of background hooks since the last call, without their decisions, which come too late."""
        late, self._late = self._late, []
        return combined(late)

    async def close(self) -> None:
        """Wait briefly for background hooks, then kill them."""
        if not self._running:
            return
        _, late = await asyncio.wait(self._running, timeout=LATE_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _start(self, run: Coroutine[Any, Any, HookAnswer]) -> None:
        async def kept() -> None:
            answer = await run
            self._late.append(replace(answer, decision="", rewritten=None, stop=None))

        task = asyncio.get_running_loop().create_task(kept())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _tasks(self, event: HookEvent) -> list[_Task]:
        """Return the hooks to run in configuration order, each command once for the same input."""
        wanted = [hook for hook in self._hooks if hook.event == event.name and hook not in self._done]
        if not event.tellings:
            return [_Task(hook) for hook in wanted if hook.matches(event.names)]
        return [
            _Task(hook, telling)
            for hook in wanted
            for telling in event.tellings.get(hook.dialect, ())
            if hook.matches(telling.names) and may_apply(hook.condition, telling.names, telling.input)
        ]

    async def _run(self, task: _Task, data: bytes, event: HookEvent) -> HookAnswer:
        hook, seconds, start = task.hook, min(task.hook.timeout, event.longest), time.monotonic()
        answer = task.translated(await self._answer(hook, data, seconds))
        before, took = self.runs.get(hook), time.monotonic() - start
        times = before.count + 1 if before else 1
        self.runs[hook] = HookRun(time.time(), took, answer.outcome, bool(answer.trouble), times)
        stop = answer.stop and self._clean(answer.stop)
        return replace(answer, reason=self._clean(answer.reason), context=self._clean(answer.context), stop=stop)

    async def _answer(self, hook: Hook, data: bytes, seconds: float) -> HookAnswer:
        if not hook.prompt:
            run = hook_run(hook, data, self.facts.cwd, self._environment, seconds)
            return read_answer(hook, await run_command(run))
        if self._ask is None:
            return HookAnswer(hook, trouble="needs a model, and none is set.")
        try:
            async with asyncio.timeout(seconds):
                return await ask_prompt(hook, data, self._ask)
        except TimeoutError:
            return HookAnswer(hook, trouble=TROUBLES["timeout"].format(seconds=seconds))

    def _payload(self, event: HookEvent, task: _Task) -> bytes:
        mode = self.facts.mode()
        payload = {
            "session_id": self.facts.session,
            "transcript_path": str(self.facts.transcript),
            "cwd": event.cwd or str(self.facts.cwd),
            "hook_event_name": HOOK_EVENTS[event.name],
            "permission_mode": _MODES.get(mode, mode),
            **event.fields,
            **task.fields(),
        }
        return json.dumps(clean_json(payload), ensure_ascii=False, default=str).encode()


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
