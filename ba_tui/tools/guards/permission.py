"""Asks for consent: what the policy denies does not run, what it asks about waits for the person.

The verdicts are the policy's; how a question looks is a face's business. Each decision goes out as ``Judged``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.errors import BaError
from ba_tui.core.events import PERSON, Judged, Notice
from ba_tui.core.messages import clean_json
from ba_tui.core.profiles import WORKING
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, ToolResult, failure
from ba_tui.core.text.json_line import args_hash
from ba_tui.core.text.rule_words import split_rules
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import held_paths
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, judged_call
from ba_tui.permissions.warnings import warnings_of
from ba_tui.tools.failed import failed_result, outcome
from ba_tui.tools.guards.validate import Checker

GuardVerdict: TypeAlias = Allow | Deny | Ask
DecidedBy: TypeAlias = Literal["allow", "ask", "deny"]
DecidedFor: TypeAlias = Literal["rule", "mode", "person", "hook", "sandbox"]
CallJudge: TypeAlias = Callable[[JudgedCall], GuardVerdict]
Remember: TypeAlias = Callable[[str, Literal["session", "always"]], None]


Settle: TypeAlias = Callable[[Call], Awaitable[str]]
AGAIN = "ba ended before you answered"


async def settled(call: Call) -> str:
    """Where nothing watches protected files."""
    del call
    return ""


async def never() -> None:
    """Where the mode can't change."""
    await asyncio.get_running_loop().create_future()


@frozen
class Gate:
    """``judge`` a call to be made in a folder; ``remember`` a rule; ``folder`` a call would run in; ``shown`` of it.
    ``settle`` what commands did to protected files: asks about it, and says why nothing may run unasked until then.
    ``mode_changed`` returns when another mode was chosen."""

    judge: CallJudge
    remember: Remember
    folder: Callable[[Call], Path]
    shown: Callable[[Path], str] = str
    settle: Settle = settled
    mode_changed: Callable[[], Awaitable[None]] = never

    async def judged(self, request: JudgedCall) -> GuardVerdict:
        """Off the loop for what runs commands or code, every word of which is looked up on the disk, for what goes
        out, which is compared with all that was read, for SQL, whose parser takes a while to load, for what must be
        held to reading, where a sandbox is looked for, and for a tool that looks for its paths itself: there may be
        50,000 files in the copy of an agent."""
        facts = request.tool.facts
        if request.tool.effect in {Effect.EXECUTE, Effect.NETWORK} or facts.sql or facts.paths_of or facts.reads:
            return await asyncio.to_thread(self.judge, request)
        return self.judge(request)


def permission(gate: Gate) -> Guard:
    def guard(tool: Tool) -> Tool:
        checker = Checker(tool.input_schema)

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await once(args, call)
            while result is None:
                # The mode answered: it is judged like a call that was made just now.
                result = await once(args, call)
            return result

        async def once(args: Mapping[str, Any], call: Call) -> ToolResult | None:
            folder = gate.folder(call)
            reasons: Sequence[str] = ()
            with held_paths():
                verdict = await gate.judged(judged_call(tool, args, folder, call))
                if not isinstance(verdict, Deny) and (reasons := await concerns(tool, args, call)):
                    verdict = concerned(verdict, reasons)
                if call.again and isinstance(verdict, Allow):
                    verdict = concerned(verdict, (AGAIN,))
                if isinstance(verdict, Allow) and tool.effect is Effect.EXECUTE and (why := await gate.settle(call)):
                    verdict = Deny(why)
                call.branch.emit(_by_policy(verdict, tool, args, call))
                match verdict:
                    case Allow(profile=profile, steps=steps):
                        return await tool.run(args, replace(call, profile=profile, steps=steps))
                    case Deny(reason=reason, malformed=malformed, hint=hint):
                        return failure("invalid_parameters" if malformed else "permission_denied", reason, hint=hint)
                    case Ask() as ask:
                        pass
            return await _Consent(gate, tool, checker, folder, by_mode=not reasons).run(ask, args, call)

        return replace(tool, run=run)

    return guard


async def concerns(tool: Tool, args: Mapping[str, Any], call: Call) -> Sequence[str]:
    """Why the person is to be asked: what guards before this one say, and the tool itself."""
    own = await tool.concern(args) if tool.concern else ""
    return (*call.concerns, own) if own else call.concerns


def concerned(verdict: Allow | Ask, reasons: Sequence[str]) -> Ask:
    """The question that ``verdict`` becomes when there are ``reasons`` to ask the person."""
    why = "; ".join(reasons)
    if isinstance(verdict, Ask):
        # Such reasons come back with every call: a rule for the session would promise what it can't keep.
        return replace(verdict, reason=f"{why}; {verdict.reason}", session_rule=None)
    steps = [step.profile for step in verdict.steps]
    together = replace(WORKING, git=any(each.git for each in steps), packages=any(each.packages for each in steps))
    return Ask(why, None, profile=together if steps else verdict.profile)


def _by_policy(verdict: GuardVerdict, tool: Tool, args: Mapping[str, Any], call: Call) -> Judged:
    said = "" if isinstance(verdict, Allow) else verdict.reason
    name = {Allow: "allow", Ask: "ask", Deny: "deny"}[type(verdict)]
    by: DecidedFor = "rule" if verdict.by else "mode"
    if isinstance(verdict, Ask) and call.concerns:
        by = "hook"
    if call.branch.name == PERSON and by == "mode":
        by = "person"
    profile = verdict.profile.name if isinstance(verdict, Allow) and tool.effect is Effect.EXECUTE else ""
    return Judged(call.id, tool.name, cast("DecidedBy", name), by, verdict.by, said, args_hash(args), profile)


@frozen
class _Consent:
    """``by_mode``: whether a mode may answer the question, as nothing but rules and the mode made us ask."""

    gate: Gate
    tool: Tool
    checker: Checker
    folder: Path
    by_mode: bool

    async def run(self, ask: Ask, args: Mapping[str, Any], call: Call) -> ToolResult | None:
        """None when the mode that the person chose meanwhile allows the call."""
        try:
            question = await self._question(ask, args, call)
        except BaError as error:
            # What cannot be done need not be asked about.
            return failed_result(error)
        reply = await call.ask(question, partial(self._mode_allows, args, call) if self.by_mode else None)
        if reply.by == "mode":
            return None
        if reply.choice in {"deny", "text"}:
            call.branch.emit(self._by_reply("deny", reply, ask, args, call))
            return _denied(reply)
        if reply.edited is not None and clean_json(reply.edited) != clean_json(dict(args)):
            with held_paths():
                return await self._run_edited(reply, call)
        approved = question.preview if reply.by == "person" else None
        with held_paths():
            return await self._run_again(ask, reply, args, replace(call, approved=approved))

    async def _mode_allows(self, args: Mapping[str, Any], call: Call) -> Reply:
        """Wait for a mode in which the call need not ask."""
        while True:
            await self.gate.mode_changed()
            with held_paths():
                verdict = await self.gate.judged(judged_call(self.tool, args, self.folder, call))
            if isinstance(verdict, Allow):
                return Reply("once", "The mode that was chosen allows it.", by="mode")

    async def _run_again(self, ask: Ask, reply: Reply, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Run what the person allowed, when it is still what they were asked about."""
        match verdict := await self.gate.judged(judged_call(self.tool, args, self.folder, call)):
            case Deny(reason=reason):
                call.branch.emit(_by_policy(verdict, self.tool, args, call))
                return failure("permission_denied", reason)
            case Ask(rule=rule, risks=risks) if (rule, risks) != (ask.rule, ask.risks):
                message = "The files of this call changed while the user was asked, so it was not run."
                call.branch.emit(_by_policy(Deny(message), self.tool, args, call))
                return failure("permission_denied", message, hint="Look at the file again; it may be a link now.")
            case _:
                call = replace(call, profile=ask.profile)
                call.branch.emit(self._by_reply("allow", reply, ask, args, call))
                await keep_rule(self.gate.remember, reply, ask, call)
                result = await self.tool.run(args, call)
        if reply.by == "nobody":
            return replace(result, text=f"{reply.text} The rule {ask.by} allows it then.\n{result.text}")
        return result

    async def _question(self, ask: Ask, args: Mapping[str, Any], call: Call) -> Question:
        preview = await self.tool.preview(args) if self.tool.preview else None
        if isinstance(preview, CommandText) and not preview.cwd:
            preview = replace(preview, cwd=self.gate.shown(self.folder))
        return Question(
            "permission",
            f"Allow {self.tool.name}?",
            call_id=call.id,
            tool=self.tool.name,
            args=clean_json(dict(args)),
            preview=preview,
            reason=ask.reason,
            risks=ask.risks,
            rule=ask.rule,
            session_rule=ask.session_rule,
            warnings=await asyncio.to_thread(warnings_of, args),
            rewritten=call.rewritten,
            timeout=ask.timeout,
            on_timeout=ask.on_timeout,
        )

    def _by_reply(self, word: DecidedBy, reply: Reply, ask: Ask, args: Mapping[str, Any], call: Call) -> Judged:
        """What the person decided, or what the rule decides when nobody answers."""
        kept = ", ".join(split_rules(kept_rule(reply, ask) or ""))
        by: dict[str, DecidedFor] = {"nobody": "rule" if ask.by else "mode", "hook": "hook"}
        rule = ask.by if reply.by == "nobody" else kept
        who = by.get(reply.by, "person")
        profile = call.profile.name if word == "allow" and self.tool.effect is Effect.EXECUTE else ""
        return Judged(call.id, self.tool.name, word, who, rule, reply.text.strip(), args_hash(args), profile)

    async def _run_edited(self, reply: Reply, call: Call) -> ToolResult:
        """Run what the person made of the call, when it is a call of the tool at all and no rule denies it."""
        edited: dict[str, Any] = reply.edited or {}
        if complaint := await self.checker.complaint(edited):
            return failure("invalid_parameters", f"The user changed the arguments, but they do not fit: {complaint}")
        asked = Ask("", None)
        match verdict := await self.gate.judged(judged_call(self.tool, edited, self.folder, call)):
            case Deny(reason=reason):
                call.branch.emit(_by_policy(verdict, self.tool, edited, call))
                return failure("permission_denied", f"The user changed the arguments, but: {reason}")
            case Ask() as asked:
                pass
            case Allow(steps=steps):
                call = replace(call, steps=steps)
        call = replace(call, profile=verdict.profile)
        asked = replace(asked, by="")
        call.branch.emit(self._by_reply("allow", reply, asked, edited, call))
        await keep_rule(self.gate.remember, reply, asked, call)
        result = await outcome(self.tool, edited, call)
        shown = json.dumps(clean_json(edited), ensure_ascii=False)
        return replace(result, text=f"The user changed the arguments before allowing the call: {shown}\n{result.text}")


def kept_rule(reply: Reply, ask: Ask) -> str | None:
    """Return the rules that an answer keeps, one a line; None when it keeps none."""
    if reply.choice == "session":
        return reply.rule or ask.session_rule or ask.rule
    return reply.rule or ask.rule if reply.choice == "always" else None


async def keep_rule(remember: Remember, reply: Reply, ask: Ask, call: Call) -> None:
    """Keep the rules that a person's answer asks for, off the loop. When they can't be kept, say so and go on."""
    rule = kept_rule(reply, ask)
    if rule is None:
        return
    try:
        await asyncio.to_thread(remember, rule, "always" if reply.choice == "always" else "session")
    except BaError as error:
        shown = ", ".join(split_rules(rule))
        call.branch.emit(Notice(f"The rule {shown} could not be kept: {error}", "warning", error.hint))


def _denied(reply: Reply) -> ToolResult:
    words = reply.text.strip()
    if reply.by == "nobody":
        return failure("permission_denied", f"The call was not allowed. {words}", hint="Go on without it and say so.")
    if reply.by == "hook":
        return failure("permission_denied", words)
    if words:
        return failure(
            "permission_denied", f"The user did not allow this call and said: {words}", hint="Do what they said."
        )
    return failure("permission_denied", "The user did not allow this call.")
