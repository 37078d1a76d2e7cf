"""Runs the hooks of an event, all at once, and says what they decided together.

When which event happens is known to ``turns`` and to the guard around tools.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Any

from ba_tui.core.agent import AskModel
from ba_tui.core.messages import clean_json
from ba_tui.core.ports.hooks import HookRun
from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.values import frozen
from ba_tui.hooks.answers import HookAnswer, HookVerdict, combined, read_answer
from ba_tui.hooks.config import Dialect, Hook
from ba_tui.hooks.found import SessionFacts
from ba_tui.hooks.process import TROUBLES, HookCommand, run_command
from ba_tui.settings import HOOK_EVENTS

# The condition of a hook, such as ``Bash(git *)``. In doubt the hook runs: it may be one that blocks.

_RULE = regex(r"([\w*.-]+)\s*(?:\((.*)\))?", re.DOTALL)
_PARTS = regex(r"[;&|\n()`]+|\$\(")
_ASSIGNED = regex(r"\A(?:\w+=\S*\s+)+")
_TARGETS = ("command", "file_path", "notebook_path", "path", "url", "pattern", "query", "skill")
_DOMAIN = "domain:"


def may_apply(condition: str, names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Whether a hook with ``condition`` is to run for a call of a tool with ``names`` and the input ``given``."""
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


LATE_SECONDS = 1.0
"""Seconds that hooks in the background have when a session is closed."""
_MODES = {"accept-edits": "acceptEdits", "bypass": "bypassPermissions"}


@frozen
class ToolTelling:
    """A call as a hook is told of it: the names of the tool, the usual one first, and its input.

    ``own`` gives the tool's real arguments for an input that a hook changed; raises ValueError where it can't.
    """

    names: tuple[str, ...]
    input: Mapping[str, Any]
    own: Callable[[Mapping[str, Any]], dict[str, Any]]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def named_for(self, hook: Hook) -> str:
        """The name that the hook's matcher knows; the usual one where it knows none or all."""
        return next((name for name in self.names if hook.matches((name,))), self.names[0])


@frozen
class HookEvent:
    """An event as it happens: our name of it, what is told beside the usual, what a matcher may call it.

    ``tellings``: the call that it is about, by whose names a hook reads; several where a call changes several files.
    ``longest``: seconds that no hook may exceed here, whatever is set.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Sequence[str] = ()
    cwd: str = ""
    longest: float = 600.0
    tellings: Mapping[Dialect, Sequence[ToolTelling]] = field(default_factory=dict[Dialect, Sequence[ToolTelling]])


class Halt:
    """Why an agent is to end before its next request, as a hook after one of its calls said; empty when it is not."""

    def __init__(self) -> None:
        self.why = ""


@frozen
class _Task:
    """One hook that is to run, and what it is told of a call."""

    hook: Hook
    telling: ToolTelling | None = None

    def fields(self) -> Mapping[str, Any]:
        if self.telling is None:
            return {}
        name = self.telling.named_for(self.hook)
        return {"tool_name": name, "tool_input": self.telling.input, **self.telling.fields}

    def translated(self, answer: HookAnswer) -> HookAnswer:
        """With the input that the hook changed as the tool's arguments; a change that can't be made denies the call."""
        if answer.rewritten is None or self.telling is None:
            return answer
        try:
            return replace(answer, rewritten=self.telling.own(answer.rewritten))
        except (ValueError, TypeError, AttributeError) as error:
            reason = f"{self.hook.label} changed the input in a way that ba can't apply: {error}."
            return replace(answer, decision="deny", reason=reason, rewritten=None)


class Hooks:
    """The hooks of one conversation. ``clean`` makes what they print fit for a model, ``ask`` asks the small one."""

    def __init__(
        self, hooks: Sequence[Hook], facts: SessionFacts, clean: Callable[[str], str], ask: AskModel | None = None
    ) -> None:
        self._hooks = tuple(hooks)
        self._ask = ask
        self._done: set[Hook] = set()
        """Hooks that run once, and did."""
        self.runs: dict[Hook, HookRun] = {}
        """How each hook went the last time."""
        self._late: list[HookAnswer] = []
        self._running: set[asyncio.Task[None]] = set()
        self.facts = facts
        self._clean = clean
        project = str(facts.project)
        self._environment = {**facts.environment, "BA_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}

    def wanted(self, name: str, names: Sequence[str] = ()) -> bool:
        """Whether any hook is for it."""
        return any(hook.event == name and hook.matches(names) for hook in self._hooks)

    async def fire(self, event: HookEvent) -> HookVerdict:
        """Run them and gather what they say. Fails for none of theirs; cancelling ends them."""
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
        """What hooks that ran in the background have said since the last call; what they decide comes too late."""
        late, self._late = self._late, []
        return combined(late)

    async def close(self) -> None:
        """Give the hooks that run in the background a moment, then end them."""
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
        """In the order of the configuration, the same command once for the same input."""
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
            command = HookCommand(hook.command, hook.args, data, self.facts.cwd, self._environment, seconds)
            return read_answer(hook, await run_command(command))
        if self._ask is None:
            return HookAnswer(hook, trouble="needs a model, and none is set.")
        from ba_tui.hooks.prompts import ask_prompt  # noqa: PLC0415 - few hooks are prompts

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
