"""The guard for consent: denied calls do not run, and the user is asked about others. Each decision is emitted as
``Judged``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.effects import WORKING
from ba_tui.core.errors import BaError
from ba_tui.core.events import PERSON, Judged, Notice
from ba_tui.core.messages import clean_json
from ba_tui.core.ports.permissions import split_rules
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import ActiveSkill, CommandText, ToolResult, failure
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.lookalikes import warnings_of
from ba_tui.permissions.paths import held_paths
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement, judged_call
from ba_tui.tools.failures import failed_result, outcome
from ba_tui.tools.guards.validate import Checker

GuardVerdict: TypeAlias = Allow | Deny | Ask
DecidedBy: TypeAlias = Literal["allow", "ask", "deny"]
DecidedFor: TypeAlias = Literal["rule", "mode", "person", "hook", "sandbox"]
CallJudge: TypeAlias = Callable[[JudgedCall], GuardVerdict]
Remember: TypeAlias = Callable[[str, Literal["session", "always"]], None]


Settle: TypeAlias = Callable[[Call], Awaitable[str]]
AGAIN = "ba ended before you answered"


async def settled(call: Call) -> str:
    """Return that nothing is undecided: protected files are not watched."""
    del call
    return ""


async def never() -> None:
    """Wait forever: the mode can't change."""
    await asyncio.get_running_loop().create_future()


class PermissionGate:
    """The guard for consent, for all tools that may be called in one conversation."""

    def __init__(
        self,
        judge: CallJudge,
        remember: Remember,
        folder: Callable[[Call], Path],
        shown: Callable[[Path], str] = str,
        settle: Settle = settled,
        mode_changed: Callable[[], Awaitable[None]] = never,
    ) -> None:
        """``judge`` returns the verdict on a call; ``remember`` saves a rule; ``folder`` returns the folder of a call,
        ``shown`` its text for the user. ``settle`` asks about protected files that commands changed, and returns why
        nothing may run until then. ``mode_changed`` returns when the user chose another mode."""
        self.remember = remember
        self.shown = shown
        self.mode_changed = mode_changed
        self._judge = judge
        self._folder = folder
        self._settle = settle

    async def judged(self, request: JudgedCall) -> GuardVerdict:
        """Judge a call. Runs in a thread for slow judgements: commands and code, whose words are looked up on the
        disk; network calls, compared with all that was read; SQL, whose parser loads slowly; sandboxed reading
        tools; and tools that find their own paths, of which an agent's copy may have 50,000."""
        facts = request.tool.facts
        if request.tool.effect in {Effect.EXECUTE, Effect.NETWORK} or facts.sql or facts.paths_of or facts.reads:
            return await asyncio.to_thread(self._judge, request)
        return self._judge(request)

    def guard(self, tool: Tool) -> Tool:
        """Return ``tool`` within the guard."""
        checker = Checker(tool.input_schema)

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            result = await self._run(tool, checker, args, call)
            while result is None:
                # The mode changed: judge the call again.
                result = await self._run(tool, checker, args, call)
            return result

        return replace(tool, run=run)

    async def _run(self, tool: Tool, checker: Checker, args: Mapping[str, Any], call: Call) -> ToolResult | None:
        """Run an allowed call, or ask first; return None if a new mode answered the question."""
        folder = self._folder(call)
        reasons: Sequence[str] = ()
        with held_paths():
            verdict = await self.judged(judged_call(tool, args, folder, call))
            if not isinstance(verdict, Deny) and (reasons := await concerns(tool, args, call)):
                verdict = concerned(verdict, reasons)
            if call.again and isinstance(verdict, Allow):
                verdict = concerned(verdict, (AGAIN,))
            if isinstance(verdict, Allow) and tool.effect is Effect.EXECUTE and (why := await self._settle(call)):
                verdict = Deny(why)
            call.branch.emit(_by_policy(verdict, tool, args, call))
            match verdict:
                case Allow(profile=profile, steps=steps):
                    return await tool.run(args, replace(call, profile=profile, steps=steps))
                case Deny(reason=reason, malformed=malformed, hint=hint):
                    return failure("invalid_parameters" if malformed else "permission_denied", reason, hint=hint)
                case Ask() as ask:
                    pass
        return await _Consent(self, tool, checker, folder, by_mode=not reasons).run(ask, args, call)


async def concerns(tool: Tool, args: Mapping[str, Any], call: Call) -> Sequence[str]:
    """Return the reasons to ask the user: those of earlier guards, and the tool's own."""
    own = await tool.concern(args) if tool.concern else ""
    return (*call.concerns, own) if own else call.concerns


def concerned(verdict: Allow | Ask, reasons: Sequence[str]) -> Ask:
    """Return the question that ``reasons`` make of ``verdict``."""
    why = "; ".join(reasons)
    if isinstance(verdict, Ask):
        # These reasons recur with every call, so a rule for the session would not prevent the question.
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
    """Asks the user about a call. ``by_mode``: whether a new mode may answer, because only rules and the mode led to
    the question."""

    gate: PermissionGate
    tool: Tool
    checker: Checker
    folder: Path
    by_mode: bool

    async def run(self, ask: Ask, args: Mapping[str, Any], call: Call) -> ToolResult | None:
        """Ask, and run an allowed call; return None if a new mode allows it."""
        try:
            question = await self._question(ask, args, call)
        except BaError as error:
            # An impossible call needs no question.
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
        """Wait for a mode that allows the call."""
        while True:
            await self.gate.mode_changed()
            with held_paths():
                verdict = await self.gate.judged(judged_call(self.tool, args, self.folder, call))
            if isinstance(verdict, Allow):
                return Reply("once", "The mode that was chosen allows it.", by="mode")

    async def _run_again(self, ask: Ask, reply: Reply, args: Mapping[str, Any], call: Call) -> ToolResult:
        """Run the allowed call if it is still the one that the user was asked about."""
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
        """Return the decision of the user, or that of the rule if there was no answer."""
        kept = ", ".join(split_rules(kept_rule(reply, ask) or ""))
        by: dict[str, DecidedFor] = {"nobody": "rule" if ask.by else "mode", "hook": "hook"}
        rule = ask.by if reply.by == "nobody" else kept
        who = by.get(reply.by, "person")
        profile = call.profile.name if word == "allow" and self.tool.effect is Effect.EXECUTE else ""
        return Judged(call.id, self.tool.name, word, who, rule, reply.text.strip(), args_hash(args), profile)

    async def _run_edited(self, reply: Reply, call: Call) -> ToolResult:
        """Run the call as the user edited it, if its arguments are valid and no rule denies it."""
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
    """Return the rules that an answer saves, one per line; None if none."""
    if reply.choice == "session":
        return reply.rule or ask.session_rule or ask.rule
    return reply.rule or ask.rule if reply.choice == "always" else None


async def keep_rule(remember: Remember, reply: Reply, ask: Ask, call: Call) -> None:
    """Save the rules of the user's answer, in a thread. On failure emit a notice and continue."""
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


ALWAYS = frozenset({
    *("activate_skill", "end_skill", "run_skill_script", "read_artifact", "tool_search"),
    *("ask_user", "todo_write", "todo_read"),
})  # fmt: skip
"""Tools that every skill allows."""


def within_skill(judge: CallJudge, limits: Callable[[], ActiveSkill | None]) -> CallJudge:
    """Return ``judge`` limited to the tools that the active skill allows; other calls are denied before any rule
    applies. ``limits`` returns None for no limit."""

    def judged(request: JudgedCall) -> Judgement:
        skill, tool = limits(), request.tool
        if skill and tool.name not in ALWAYS:
            allowed = {rule.partition("(")[0] for rule in skill.allowed_tools}
            if tool.name not in allowed:
                names = ", ".join(sorted(allowed))
                return Deny(f"While the skill {skill.id} is active only these tools may be used: {names or 'none'}.")
        return judge(request)

    return judged
