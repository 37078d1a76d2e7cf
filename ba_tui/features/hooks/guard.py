"""Hooks around a tool: they may deny a call, ask the user, change the arguments, or comment on the result.

Before a call they run outside of permission, so calls that they allow or rewrite are still judged. After it they run
outside of ``output``, so their comments are not shortened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ba_tui.core.errors import BaError, StopTurn
from ba_tui.core.events import Judged
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Display, ToolResult, failure
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.tool import Call, Consult, Tool
from ba_tui.core.values import frozen
from ba_tui.features.hooks.answers import HookVerdict
from ba_tui.features.hooks.runner import AgentHooks, HookEvent, Hooks
from ba_tui.settings.hooks import Dialect
from ba_tui.settings.tool_names import names_of
from ba_tui.tools.claude_calls import (
    RESPONSE_CHARS,
    ToolTelling,
    applied_calls,
    claude_calls,
    claude_names,
    claude_response,
)
from ba_tui.tools.failures import outcome
from ba_tui.tools.guards.pipeline import HookGuards
from ba_tui.tools.guards.validate import Checker

_BEFORE = ("pre_tool", "permission_request")
_AFTER = ("post_tool", "post_tool_failure")
APPLIED = "apply_changes"
"""The tool whose changes are in a copy of the project, not in its arguments."""
_FILE = "file_path"
"""Claude Code's name for a path, passed in addition to ours for its hooks."""


def hooking(hooks: Hooks) -> HookGuards:
    def wanted(tool: Tool, events: Sequence[str]) -> bool:
        return any(hooks.wanted(event, _names(tool)) for event in events)

    def before(tool: Tool) -> Tool:
        if not wanted(tool, (*_BEFORE, *_AFTER)):
            return tool
        return replace(tool, run=_HookedTool(hooks, tool, Checker(tool.input_schema), _names(tool)).run)

    def after(tool: Tool) -> Tool:
        if not wanted(tool, _AFTER):
            return tool
        return replace(tool, run=_HookedTool(hooks, tool, Checker(tool.input_schema), _names(tool)).run_and_tell)

    return HookGuards(before, after)


def _names(tool: Tool) -> Sequence[str]:
    """Return the names that matchers may use, ours and Claude Code's."""
    return (*names_of(tool.name), *claude_names(tool.name))


@frozen
class _HookedTool:
    hooks: Hooks
    tool: Tool
    checker: Checker
    names: Sequence[str]

    async def run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        verdict = await self._fire("pre_tool", call, args)
        if verdict.decision == "deny":
            self._denied(call, args, verdict)
            return failure("permission_denied", f"A hook of the user denied this call: {verdict.reason}")
        changed = verdict.rewritten
        if changed is not None and changed != clean_json(dict(args)):
            if complaint := await self.checker.complaint(changed):
                message = f"A hook of the user changed the arguments, but they do not fit: {complaint}"
                return failure("invalid_parameters", message, hint="Tell the user; the hook is to be corrected.")
            args, call = changed, replace(call, rewritten=verdict.rewriter)
        if verdict.decision == "ask":
            concern = f"a hook asks: {verdict.reason}" if verdict.reason else "a hook asks"
            call = replace(call, concerns=(*call.concerns, concern))
        if consult := self._consulted(args, call):
            call = replace(call, consults=(consult, *call.consults))
        call.progress.given = args
        result = await outcome(self.tool, args, call)
        head = [_told_changed(args)] if call.rewritten else []
        tail = [f"\nA hook of the user adds: {verdict.context}"] if verdict.context else []
        return replace(result, text="\n".join([*head, result.text, *tail])) if head or tail else result

    async def run_and_tell(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Run the call, then the hooks on its result, unless the call was not allowed."""
        result = await self.tool.run(args, call)
        given = call.progress.given
        return result if given is None else await self._after(result, given, call)

    async def _after(self, result: ToolResult, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Return ``result`` with the comments of hooks; unchanged for a call that was not allowed."""
        if result.error and result.error.kind in {"permission_denied", "interrupted"}:
            return result
        event = "post_tool_failure" if result.is_error else "post_tool"
        verdict = await self._said(event, call, args, result)
        if verdict.stop is not None:
            # The call has run, so the turn ends after its result.
            call.branch.state(AgentHooks).halt = verdict.stop
        words: list[str] = []
        if verdict.decision == "deny":
            words.append(f"A hook of the user objects to this result: {verdict.reason}")
        if verdict.context:
            words.append(f"A hook of the user adds: {verdict.context}")
        return replace(result, text="\n\n".join([result.text, *words])) if words else result

    def _consulted(self, args: Mapping[str, Any], call: Call) -> Consult | None:
        """Return the hooks' answer to a question about the call: they may deny it, but only the user allows it."""
        if not self.hooks.wanted("permission_request", self.names):
            return None

        async def consult(question: Question) -> Reply | None:
            if question.kind != "permission":
                return None
            verdict = await self._fire("permission_request", call, question.args or args)
            if verdict.decision != "deny":
                return None
            return Reply("deny", f"A hook of the user denied this call: {verdict.reason}", by="hook")

        return consult

    async def _fire(self, event: str, call: Call, args: Mapping[str, Any]) -> HookVerdict:
        """Run the hooks of an event. Raises StopTurn if a hook ends the turn."""
        verdict = await self._said(event, call, args)
        if verdict.stop is not None:
            raise StopTurn(f"A hook ended the turn: {verdict.stop}")
        return verdict

    async def _said(
        self, event: str, call: Call, args: Mapping[str, Any], result: ToolResult | None = None
    ) -> HookVerdict:
        if not self.hooks.wanted(event, self.names):
            return HookVerdict()
        common = {"tool_use_id": call.id, "agent_id": call.branch.name}
        cwd, display = self.hooks.facts.cwd, result.display if result else None
        if self.tool.name == APPLIED and result is None:
            display = await self._shown(args)
        claude = claude_calls(self.tool.name, args, cwd)
        if self.tool.name == APPLIED:
            claude = applied_calls(display, args, cwd)
        tellings: Mapping[Dialect, Sequence[ToolTelling]] = {
            "ba": [replace(each, fields=_outcome(result)) for each in self._tellings(args)],
            "claude": [replace(each, fields={**_outcome(result), **claude_response(each, result)}) for each in claude],
        }
        folder = call.branch.transcript.cwd or ""
        verdict = await self.hooks.fire(HookEvent(event, common, self.names, folder, tellings=tellings))
        for told in verdict.events:
            call.branch.emit(told)
        return verdict

    async def _shown(self, args: Mapping[str, Any]) -> Display | None:
        """Return the preview of the changes; None for an invalid call."""
        with suppress(BaError):
            return await self.tool.preview(args) if self.tool.preview else None
        return None

    def _denied(self, call: Call, args: Mapping[str, Any], verdict: HookVerdict) -> None:
        reason = verdict.reason
        call.branch.emit(Judged(call.id, self.tool.name, "deny", "hook", verdict.by, reason, args_hash(args)))

    def _tellings(self, args: Mapping[str, Any]) -> Sequence[ToolTelling]:
        """Return the call in our names, once for each of its files, as a hook expects one file."""
        files = self._files(args)
        inputs = [{**args, _FILE: file} for file in files] or [dict(args)]
        return [ToolTelling(tuple(names_of(self.tool.name)), each, partial(self._own, files)) for each in inputs]

    def _own(self, files: Sequence[str], changed: Mapping[str, Any]) -> dict[str, Any]:
        """Convert arguments that a hook changed back to those of the tool."""
        own, target = dict(changed), self.tool.facts.target
        if files:
            named = own.pop(_FILE, None)
            if named is not None and self.tool.facts.paths and (named != files[0] or target not in own):
                own[target] = named
        return own

    def _files(self, args: Mapping[str, Any]) -> Sequence[str]:
        """Return the full paths of a call's files; none for tools that search or have an argument ``file_path``."""
        facts = self.tool.facts
        if facts.paths not in {(), (facts.target,)} or _FILE in self.tool.input_schema.get("properties", {}):
            return ()
        return tuple(dict.fromkeys(str(self.hooks.facts.cwd / path) for path in self.tool.paths(args)))


def _outcome(result: ToolResult | None) -> Mapping[str, Any]:
    """Return the fields on a result for hooks; none before the call."""
    if result is None:
        return {}
    if result.is_error:
        return {"error": result.text[:RESPONSE_CHARS]}
    return {"tool_response": {"text": result.text[:RESPONSE_CHARS], "summary": result.summary, "is_error": False}}


def _told_changed(changed: Mapping[str, Any]) -> str:
    shown = json.dumps(clean_json(dict(changed)), ensure_ascii=False)
    return f"A hook of the user changed the arguments of the call: {shown}"
