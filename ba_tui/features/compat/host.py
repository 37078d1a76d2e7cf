"""Runs a session for a host program, which writes prompts, control requests and replies as lines and reads lines."""

from __future__ import annotations

import asyncio
import json
import os
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TextIO, cast

from ba_tui import __version__
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, TurnsUsed
from ba_tui.core.events import Answered, Asked, Event, Notice
from ba_tui.core.messages import Message, ToolUse
from ba_tui.core.ports.mcp import McpServers, ServerPhase
from ba_tui.core.ports.permissions import joined_rules, split_rules
from ba_tui.core.provider import ModelInfo
from ba_tui.core.questions import Question, Reply
from ba_tui.core.services import Services, begin
from ba_tui.core.start import Start
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, with_hint
from ba_tui.core.turn import Turn
from ba_tui.core.values import frozen
from ba_tui.faces.headless import denial
from ba_tui.faces.run_result import INTERRUPTED, USAGE, saved_code
from ba_tui.features.compat.lines import (
    MODES,
    OWN_MODES,
    QUIET,
    VERSION,
    ClaudeLines,
    ClaudeWords,
    Line,
    RunFigures,
    TurnResult,
)
from ba_tui.features.compat.requests import (
    PROMPTS,
    ControlReply,
    ControlRequest,
    PromptLine,
    WrongLine,
    read_line,
)
from ba_tui.processes.signals import interrupts
from ba_tui.tools.claude_calls import ToolTelling

_SHOWN = {"core", "on", "deferred"}
_ACTIVE = {"active", "waiting", "on"}
_PHASES: Mapping[ServerPhase, str] = {
    "off": "disabled", "untrusted": "disabled", "idle": "pending", "connecting": "pending", "waiting": "pending",
    "ready": "connected", "login": "needs-auth", "failed": "failed",
}  # fmt: skip


class Talk:
    """A conversation with its output lines, and the facts about it that a host program receives."""

    def __init__(self, conversation: Conversation, lines: ClaudeLines) -> None:
        self.conversation = conversation
        self.lines = lines
        self.first_model = conversation.model
        """The model that ``set_model`` without a name restores."""

    def tools(self, words: ClaudeWords) -> list[str]:
        """Return the tools that the model may call, by Claude Code's names. May read files."""
        tools = self.conversation.inventory.tools
        shown = [words.name(each.name) for each in tools.lines() if each.state in _SHOWN] if tools else []
        return list(dict.fromkeys(shown))

    def servers(self) -> list[Line]:
        """Return the MCP servers with their states in Claude Code's words."""
        servers = self.conversation.inventory.feature(McpServers)
        states = servers.listed() if servers else ()
        return [{"name": state.name, "status": _PHASES[state.phase]} for state in states]

    def skills(self) -> list[str]:
        """Return the ids of usable skills. Reads files."""
        skills = self.conversation.inventory.skills
        return [each.id for each in skills.lines() if each.state in _ACTIVE] if skills else []

    def commands(self) -> list[Line]:
        """Return the user's commands and the skills, in the form of ``initialize``. Reads files."""
        inventory = self.conversation.inventory
        own = inventory.commands.lines() if inventory.commands else ()
        skills = inventory.skills.lines() if inventory.skills else ()
        usable = [(each.name, each.description, each.hint) for each in own if not each.trouble]
        usable += [(each.id, each.description, "") for each in skills if each.state in _ACTIVE]
        return [{"name": name, "description": about, "argumentHint": hint} for name, about, hint in usable]

    def model(self) -> ModelInfo | None:
        """Return facts about the session's model; None if they are unknown."""
        try:
            return self.conversation.model_info()
        except BaError:
            return None


_RULE = regex(r"(?P<tool>[^()]+)(?:\((?P<content>.*)\))?")
_LASTING = frozenset({"userSettings", "projectSettings", "localSettings"})
"""Destinations of rules that outlive the session."""


class HostQuestion:
    """One question to the host program; ``can_use_tool`` in Claude Code's protocol."""

    def __init__(self, question: Question, words: ClaudeWords, calls: Mapping[str, ToolTelling]) -> None:
        self._question = question
        self._words = words
        self._call = self._named(calls)

    def _named(self, calls: Mapping[str, ToolTelling]) -> ToolTelling:
        asked = self._question
        if asked.kind == "choice":
            options = [{"label": each.label, "description": each.description} for each in asked.options]
            args = {"question": asked.text, "options": options, "multiple": asked.multiple}
            return self._words.call(ToolUse(asked.call_id, "ask_user", args))
        if not asked.args and asked.call_id in calls:
            return calls[asked.call_id]
        return self._words.call(ToolUse(asked.call_id, asked.tool or "ba", asked.args))

    def request(self) -> Line:
        """Return the ``request`` of the control_request."""
        asked = self._question
        name = self._call.names[0]
        told: Line = {
            "subtype": "can_use_tool",
            "tool_name": name,
            "display_name": name,
            "input": dict(self._call.input),
            "description": asked.text,
            "permission_suggestions": self._suggestions(),
            "tool_use_id": asked.call_id,
        }
        if asked.reason:
            told["decision_reason"] = " ".join([asked.reason, *asked.warnings])
        return told

    def _suggestions(self) -> list[Line]:
        told = [self._rule(rule) for rule in self._rules()]
        # Two rules of ba may become the same rule of Claude Code.
        rules = [each for at, each in enumerate(told) if each not in told[:at]]
        if not rules:
            return []
        return [{"type": "addRules", "rules": rules, "behavior": "allow", "destination": "session"}]

    def _rules(self) -> Sequence[str]:
        rule = self._question.session_rule or self._question.rule
        return split_rules(rule) if rule else ()

    def _rule(self, rule: str) -> Line:
        found = _RULE.fullmatch(rule)
        tool, content = (found["tool"], found["content"]) if found else (rule, None)
        told = {"toolName": self._words.name(tool)}
        return told if content is None else {**told, "ruleContent": content}

    def reply(self, response: Mapping[str, Any]) -> Reply:
        """Return the reply for a response. A response that can't be applied exactly becomes a denial."""
        if response.get("behavior") != "allow":
            return Reply("deny", str(response.get("message") or "The program that started ba denied this."))
        changed = response.get("updatedInput")
        given = cast("dict[str, Any]", changed) if isinstance(changed, dict) else dict(self._call.input)
        if self._question.kind == "choice":
            return self._choice(given)
        try:
            edited = self._call.own(given) if given != dict(self._call.input) else None
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return Reply("deny", f"The input was changed in a way that ba can't apply: {error}. Make the call anew.")
        if edited is not None and (self._question.fixed or self._question.kind != "permission"):
            return Reply("deny", "The input of this question can't be changed.")
        return self._kept(response, edited)

    def _kept(self, response: Mapping[str, Any], edited: dict[str, Any] | None) -> Reply:
        """Return the approval, with those of the suggested rules that the program accepted."""
        offered = {rule: self._rule(rule) for rule in self._rules()}
        for update in _updates(response):
            if update.get("type") != "addRules" or update.get("behavior") != "allow":
                continue
            wanted = update.get("rules")
            taken = [rule for rule, told in offered.items() if isinstance(wanted, list) and told in wanted]
            if taken and edited is None:
                lasting = update.get("destination") in _LASTING and self._question.rule is not None
                return Reply("always" if lasting else "session", rule=joined_rules(taken))
        return Reply("once", edited=edited)

    def _choice(self, given: Mapping[str, Any]) -> Reply:
        answers = given.get("answers")
        found = cast("dict[str, Any]", answers).get(self._question.text) if isinstance(answers, dict) else None
        if found is None:
            return Reply("deny", "The question was not answered. Decide yourself and name the assumption.")
        words = cast("list[Any]", found) if isinstance(found, list) else [found]
        return Reply("text", ", ".join(map(str, words)))


def _updates(response: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = response.get("updatedPermissions")
    if not isinstance(found, list):
        return ()
    return [cast("dict[str, Any]", each) for each in cast("list[Any]", found) if isinstance(each, dict)]


def unsupported_updates(response: Mapping[str, Any]) -> Sequence[str]:
    """Return the types of permission updates that ba does not apply."""
    return [str(each.get("type")) for each in _updates(response) if each.get("type") != "addRules"]


REFUSED = ("hooks", "agents", "jsonSchema", "sdkMcpServers", "skills")
"""Fields of ``initialize`` without a counterpart in ba; ignoring them silently could remove a guard."""


@frozen
class HostOptions:
    """``partial``: also write stream events of answers. ``replay``: repeat prompts. ``asks``: the program answers
    approvals. ``timeout``: seconds after which the run ends. ``opening``: fields of the first request, the only one
    whose ``PROMPTS`` are used."""

    partial: bool = False
    replay: bool = False
    asks: bool = False
    timeout: float | None = None
    opening: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ClaudeHost:
    """One run of a conversation with a host program."""

    def __init__(self, services: Services, words: ClaudeWords, out: TextIO, err: TextIO) -> None:
        self._services = services
        self._words = words
        self._out = out
        self._err = err
        self._options = HostOptions()
        self._prompts: asyncio.Queue[PromptLine | None] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[ControlReply]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._figures = RunFigures()
        self._quiet = False
        self._ended = False
        """The input has ended, so the program can't answer questions any more."""
        self._refused: BaError | None = None
        """Why prompts are refused: the program requested an unsupported field."""
        self._turn: Turn | None = None
        self._result: TurnResult | None = None
        self._pending = 0
        """Number of received prompts whose turns have not ended."""
        self._turns = 0
        self._cut = False
        """The next turn is cancelled at its start."""
        self._stopped = self._expired = False
        self._broken = self._failed = False
        self.lost: OSError | None = None
        """The error that made ``out`` unwritable, or None."""

    async def run(self, start: Start, lines: AsyncIterator[bytes], options: HostOptions) -> int:
        """Handle all ``lines``; return the exit code: 0, or 1 if the last turn failed or a line was invalid."""
        self._options = options
        for notice in self._services.notices:
            self._tell(notice)
        try:
            conversation = begin(self._services.library, start)
        except BaError as error:
            result = TurnResult(self._figures, time.time())
            result.failed(error.info())
            self._write(result.line("", None))
            self._say(error.with_hint)
            return USAGE
        told = ClaudeLines(conversation.id, conversation.model, self._words, partial=options.partial)
        talk = Talk(conversation, told)
        for event in await conversation.history():
            if isinstance(event, Notice) and event.damage:
                self._tell(event)
        with interrupts(self._stop):
            timer = asyncio.get_running_loop().call_later(options.timeout, self._expire) if options.timeout else None
            listening = asyncio.create_task(self._listen(lines, talk))
            while not self._stopped and (prompt := await self._prompts.get()) is not None:
                await self._take_turn(talk, prompt)
            listening.cancel()
            if timer:
                timer.cancel()
            await asyncio.wait([listening])
        await conversation.close()
        if not listening.cancelled():
            # Raise an internal error that ended the task.
            listening.result()
        if conversation.saving.missing:
            self._say(with_hint(*conversation.saving.missing.at_end))
        if self._stopped and not self._expired and not self.lost:
            return INTERRUPTED
        return USAGE if self._failed or self._broken else saved_code(conversation.saving.missing)

    def _stop(self) -> None:
        self._stopped = True
        self._prompts.put_nowait(None)
        self._interrupt()

    def _expire(self) -> None:
        self._expired = self._failed = True
        self._say("Stopped at the time limit.")
        self._stop()

    def _interrupt(self) -> None:
        if self._turn:
            self._turn.cancel()
        else:
            self._cut = self._pending > 0

    # Input.

    async def _listen(self, lines: AsyncIterator[bytes], talk: Talk) -> None:
        number = 0
        try:
            async for line in lines:
                number += 1
                try:
                    await self._handle(line, talk)
                except WrongLine as error:
                    self._broken = self._broken or error.broken
                    self._say(f"Line {number} of the input was skipped: {error}.")
        except BaError as error:
            self._broken = True
            self._say(error.with_hint)
        finally:
            self._ended = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_result(ControlReply("", error="the input has ended"))
            self._prompts.put_nowait(None)

    async def _handle(self, line: bytes, talk: Talk) -> None:
        match read_line(line):
            case PromptLine() as prompt:
                self._pending += 1
                self._prompts.put_nowait(prompt)
            case ControlReply(id=id) as reply:
                if (future := self._waiting.get(id)) and not future.done():
                    future.set_result(reply)
            case ControlRequest() as request:
                await self._control(request, talk)
            case None:
                pass

    async def _control(self, request: ControlRequest, talk: Talk) -> None:
        try:
            response = await self._controlled(request, talk)
        except BaError as error:
            told: Line = {"subtype": "error", "request_id": request.id, "error": error.with_hint}
        else:
            told = {"subtype": "success", "request_id": request.id}
            if response is not None:
                told["response"] = response
        self._write({"type": "control_response", "response": told})
        if request.subtype == "set_permission_mode" and told["subtype"] == "success":
            self._write(talk.lines.system("status", status=None, permissionMode=self._mode(talk)))

    async def _controlled(self, request: ControlRequest, talk: Talk) -> Line | None:
        """Carry out a control request and return its response. Raises BaError."""
        match request.subtype:
            case "initialize":
                return await self._initialized(request.fields, talk)
            case "interrupt":
                self._interrupt()
                return None
            case "set_permission_mode":
                return self._set_mode(str(request.fields.get("mode")), talk)
            case "set_model":
                wanted = request.fields.get("model")
                named = str(wanted) if wanted and wanted != "default" else talk.first_model
                talk.lines.model = talk.conversation.use_model(named).id
                return None
            case "mcp_status":
                return {"mcpServers": talk.servers()}
            case other:
                raise BaError(f"Unsupported control request subtype: {other}")

    async def _initialized(self, fields: Mapping[str, Any], talk: Talk) -> Line:
        late = () if fields == self._options.opening else PROMPTS
        if wanted := [name for name in (*REFUSED, *late) if fields.get(name)]:
            what = f"ba can't take {', '.join(wanted)} from the program that starts it."
            # Some programs do not wait for the response, so refuse their prompts too.
            self._refused = BaError(what, "See ba guide programs.")
            raise self._refused
        commands = await asyncio.to_thread(talk.commands)
        models = [
            {"value": info.id, "displayName": info.name, "description": info.provider}
            for info in self._services.catalogue.models()
        ]
        source = self._words.key_source(talk.conversation.model)
        return {
            "commands": commands,
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": models,
            "account": {"tokenSource": "none", "apiKeySource": source},
            "pid": os.getpid(),
        }

    def _set_mode(self, name: str, talk: Talk) -> Line:
        mode = "default" if name == QUIET else OWN_MODES.get(name)
        if mode is None:
            known = ", ".join([*OWN_MODES, QUIET])
            raise BaError(f"There is no permission mode {name[:40]!r}.", f"Modes: {known}.")
        talk.conversation.set_mode(mode)
        self._quiet = name == QUIET
        return {"mode": name}

    def _mode(self, talk: Talk) -> str:
        return QUIET if self._quiet else MODES[talk.conversation.permissions.mode]

    # Turns and output.

    async def _take_turn(self, talk: Talk, prompt: PromptLine) -> None:
        conversation, lines = talk.conversation, talk.lines
        self._write(await asyncio.to_thread(self._init, talk))
        if self._options.replay:
            echo = {**lines.user(prompt.content), "isReplay": True}
            self._write({**echo, "uuid": prompt.uuid} if prompt.uuid else echo)
        result = self._result = TurnResult(self._figures, time.time())
        try:
            await self._check(talk, prompt.message)
            self._turn = turn = conversation.say(prompt.message)
        except BaError as error:
            result.failed(error.info())
        else:
            if self._cut:
                turn.cancel()
            async for event in turn:
                self._told(event, turn, talk)
                result.apply(event, lines.calls)
            self._turn = None
            await self._settle()
        self._pending, self._cut = self._pending - 1, False
        if result.failed_request and result.error:
            self._write(lines.failure(result.error.with_hint, result.error.kind))
        elif result.ending == "cancelled":
            self._write(lines.user([{"type": "text", "text": "[Request interrupted by user]"}]))
        if result.error:
            self._say(result.error.with_hint)
        self._failed = result.is_error or self._expired
        self._write(result.line(conversation.id, talk.model()))

    def _told(self, event: Event, turn: Turn, talk: Talk) -> None:
        for line in talk.lines.apply(event):
            self._write(line)
        if self.lost:
            self._stop()
        match event:
            case Asked(ask_id=id, question=question):
                self._ask(id, question, turn, talk)
            case Answered(ask_id=id) if id in self._asking:
                self._asking.pop(id).cancel()
            case Notice():
                self._tell(event)
            case _:
                pass

    def _ask(self, id: str, question: Question, turn: Turn, talk: Talk) -> None:
        asks = self._options.asks and not self._quiet and not self._ended
        if not asks or question.kind not in {"permission", "choice"}:
            turn.answer(id, denial(question))
            return
        self._asking[id] = asyncio.create_task(self._asked(id, question, turn, talk))

    async def _asked(self, id: str, question: Question, turn: Turn, talk: Talk) -> None:
        put = HostQuestion(question, self._words, talk.lines.calls)
        request = str(uuid.uuid4())
        future = self._waiting[request] = asyncio.get_running_loop().create_future()
        self._write({"type": "control_request", "request_id": request, "request": put.request()})
        try:
            answer = await future
        except asyncio.CancelledError:
            self._write({"type": "control_cancel_request", "request_id": request})
            raise
        finally:
            del self._waiting[request]
        # The question is answered, so it can't be withdrawn any more.
        self._asking.pop(id, None)
        if answer.error:
            self._say(f"The question about {question.tool or 'a call'} was not answered: {answer.error}.")
            turn.answer(id, denial(question))
            return
        for kind in unsupported_updates(answer.response):
            self._say(f"A change of permissions of type {kind} was not applied: ba knows addRules only.")
        turn.answer(id, put.reply(answer.response))
        if answer.response.get("behavior") == "deny" and answer.response.get("interrupt"):
            # Note the denial here: the cancelled turn emits no result for the call.
            if (call := talk.lines.calls.get(question.call_id)) and self._result:
                self._result.denied(question.call_id, call)
            turn.cancel()

    async def _settle(self) -> None:
        """Withdraw questions that are still open at the end of the turn."""
        tasks = list(self._asking.values())
        self._asking.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _check(self, talk: Talk, message: Message) -> None:
        """Raise BaError if the prompt can't be sent."""
        conversation = talk.conversation
        if self._refused:
            raise self._refused
        most = self._services.max_turns
        if most is not None and self._turns >= most:
            text = f"This call of ba has answered {count(most, 'prompt')}, its limit."
            raise TurnsUsed(text, "Start another call with --resume, or raise max_turns.")
        self._turns += 1
        if missing := await asyncio.to_thread(self._services.setup.missing, conversation.model):
            raise BaError(missing)
        if conversation.inventory.commands:
            await asyncio.to_thread(conversation.inventory.commands.check, message.text)

    def _init(self, talk: Talk) -> Line:
        conversation = talk.conversation
        facts: Line = {
            "cwd": str(conversation.cwd),
            "tools": talk.tools(self._words),
            "mcp_servers": talk.servers(),
            "model": conversation.model,
            "permissionMode": self._mode(talk),
            "slash_commands": [each["name"] for each in talk.commands()],
            "apiKeySource": self._words.key_source(conversation.model),
            "claude_code_version": VERSION,
            "ba_version": __version__,
            "output_style": "default",
            "agents": [],
            "skills": talk.skills(),
            "plugins": [],
            "analytics_disabled": True,
            "product_feedback_disabled": True,
            "fast_mode_state": "off",
        }
        return talk.lines.system("init", **facts)

    def _tell(self, notice: Notice) -> None:
        self._say(with_hint(notice.text, notice.hint))

    def _say(self, text: str) -> None:
        self._err.write(f"ba: {paintable(text, newlines=False)}\n")
        self._err.flush()

    def _write(self, line: Line) -> None:
        if self.lost:
            return
        try:
            # ASCII output keeps control characters and bidi marks of untrusted text out of a terminal.
            self._out.write(json.dumps(line, ensure_ascii=True, default=str) + "\n")
            self._out.flush()
        except OSError as error:
            self.lost = error
