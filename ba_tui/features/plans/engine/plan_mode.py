"""Plan mode: ba asks the model to plan, the model presents its plan, and the user decides whether to execute it.

The permission policy prevents changes in plan mode; this module asks the question and changes the mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Judged, Mode, ModeChanged, Steered
from ba_tui.core.messages import Message, clean_text, reminder
from ba_tui.core.ports.agents import Delegation
from ba_tui.core.ports.memory import TaskMemory
from ba_tui.core.ports.sessions import ReadHistory, nothing_said
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Prose, ToolResult, failure
from ba_tui.core.text.patterns import regex
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.sessions.artifacts import Artifacts
from ba_tui.tools.toolbox import ModelRequests

NAME, PLAN_TOOL = "present_plan", "plan"
MODES: dict[str, Mode] = {"once": "default", "session": "accept-edits"}
"""The mode that each answer selects."""
ON = (
    "Plan mode is on: only read, change nothing. Find out what you need, then call present_plan with the whole plan; "
    "the user decides whether it is carried out. Questions that need no plan you just answer."
)
ALONE = (
    "Plan mode is on: only read, change nothing. Nobody can be asked now, so your answer is the plan: the steps, the "
    "files that each one changes, how you will check them, and what is still open."
)
OFF = "Plan mode is off. The mode is now {mode}."
AGREED = "The user agreed to the plan. The mode is now {mode}. Carry it out step by step; keep a todo list."
CARRY_OUT = "Carry out this plan?"
_STEP = regex(r"^\s{0,3}(?:\d{1,3}[.)]|[-*+])\s+\S", re.MULTILINE)
_NAMED = regex(r"\bplan(?!s?[ -]mode)s?\b|计划|方案", re.IGNORECASE)
"""The word for a plan, also in German, French, Spanish and Chinese, except in "plan mode"."""
LEAST_STEPS = 2
OPENING = 3
"""Number of first lines of text that may call an answer a plan; headings may also follow later."""


class _TurnState:
    """State of one turn: whether the model got the mode reminder, and whether the user was asked about a plan."""

    def __init__(self) -> None:
        self.told = False
        self.person = False


class PlanMode:
    """core.agent.Interceptor, and the work of the tool present_plan. One per session.

    ``attended``: a user can answer. Without a user the model's answer is the plan, and nothing follows.
    """

    def __init__(self, mode: Callable[[], Mode], set_mode: Callable[[Mode], None], *, attended: bool) -> None:
        self._mode = mode
        self._set_mode = set_mode
        self._attended = attended
        self._told: Mode | None = None
        """The mode that the model was last told of; None while that was never plan mode."""

    @property
    def presents(self) -> bool:
        """Return whether the model should have the tool present_plan now."""
        return self._attended and self._mode() == "plan"

    async def before(self, branch: Branch) -> None:
        """Tell the model the mode: once in each turn, and after it was left."""
        asked, mode = branch.state(_TurnState), self._mode()
        if mode == "plan":
            if branch.transcript.mode != mode:
                # A flag chose the mode: without a record the session would resume in another mode.
                branch.emit(ModeChanged(mode))
            if not asked.told:
                branch.emit(Steered(reminder(ON if self._attended else ALONE)))
            asked.told, self._told = True, mode
        elif self._told == "plan":
            self._told = mode
            branch.emit(Steered(reminder(OFF.format(mode=mode))))

    async def after(self, reply: Message, branch: Branch) -> None:
        """Ask about a plan that the model wrote as its answer instead of presenting it."""
        asked = branch.state(_TurnState)
        if not self.presents or asked.person or not _is_plan(reply.text, branch):
            return
        asked.person = True
        answer = await branch.ask(Question("plan", CARRY_OUT))
        words = answer.text.strip()
        if mode := self._chosen(answer, branch):
            branch.post(reminder(AGREED.format(mode=mode)))
        elif words and answer.by == "person":
            branch.post(reminder(_again(words)))

    async def present(self, text: str, call: Call) -> ToolResult:
        """Show the plan and ask whether to execute it; the result tells the model."""
        plan = clean_text(text).strip()
        if not plan:
            return failure("invalid_parameters", "The plan is empty.", hint="Write the whole plan in Markdown.")
        if self._mode() != "plan":
            return failure("invalid_parameters", "Plan mode is off.", hint="Do the work; no plan has to be presented.")
        call.branch.state(_TurnState).person = True
        question = Question("plan", CARRY_OUT, call_id=call.id, tool=NAME, preview=Prose(plan, markdown=True))
        reply = await call.ask(question)
        mode, words = self._chosen(reply, call.branch), reply.text.strip()
        verdict: Literal["allow", "deny"] = "allow" if mode else "deny"
        by: Literal["person", "mode"] = "person" if reply.by == "person" else "mode"
        why = f"to carry out the plan in {mode} mode" if mode else words
        call.branch.emit(Judged(call.id, NAME, verdict, by, reason=why))
        if mode:
            return ToolResult(AGREED.format(mode=mode), Prose(plan, markdown=True), summary=f"agreed, {mode} mode")
        if reply.by == "nobody":
            told = "Nobody can agree to the plan now. Give the whole plan as your final answer."
            return ToolResult(told, Prose(plan, markdown=True), summary="nobody could be asked")
        summary = f"keep planning: {words}" if words else "keep planning"
        return ToolResult(_again(words), Prose(plan, markdown=True), summary=" ".join(summary.split())[:200])

    def agreed(self, reply: Reply, branch: Branch) -> bool:
        """Return whether the answer approves the plan. The mode is then changed; with ``session`` edits
        are accepted.
        """
        if reply.choice not in MODES:
            return False
        if self._mode() == "plan" or reply.choice == "session":
            self._chosen(reply, branch)
        return True

    @property
    def on(self) -> bool:
        """Return whether the mode is plan."""
        return self._mode() == "plan"

    def _chosen(self, reply: Reply, branch: Branch) -> Mode | None:
        """Return the mode that the answer selects and switch to it; None if planning continues."""
        mode = MODES.get(reply.choice)
        if mode is None:
            return None
        try:
            self._set_mode(mode)
        except UsageError:
            # A folder that is not trusted allows only one other mode.
            mode = "default"
            self._set_mode(mode)
        self._told = mode
        branch.emit(ModeChanged(mode))
        return mode


def _is_plan(text: str, branch: Branch) -> bool:
    """Return whether an answer is a plan: it has steps, calls itself a plan, and does not end with a question."""
    if len(_STEP.findall(text)) < LEAST_STEPS:
        return False
    lines = [line for line in text.splitlines() if line.strip()]
    heads = (line for line in lines[OPENING:] if line.startswith("#"))
    if not any(_NAMED.search(line) for line in (*lines[:OPENING], *heads)):
        return False
    said = [message.said for message in branch.transcript.messages if message.role == "user" and not message.hidden]
    prompt = next((words.strip() for words in reversed(said) if words.strip()), "")
    return not prompt.endswith(("?", "？")) or bool(_NAMED.search(prompt))


def _again(words: str) -> str:
    if words:
        return f"The user wants to keep planning and said: {words}\nChange the plan and present it again."
    return "The user wants to keep planning. Ask what should change in one sentence, or end your turn."


def flow_folders(bundled_config: Path, user_config: Path, trusted_project: Path | None) -> list[Path]:
    """Return the folders of workflow files, lowest precedence first. A project must be trusted."""
    folders = [bundled_config / "workflows", user_config / "workflows"]
    return [*folders, trusted_project / ".ba" / "workflows"] if trusted_project else folders


@frozen
class PlanScope:
    """A session as plans see it: the conversation, guarded ``tools`` by name, delegation, memory, long results, plan
    mode. ``requests`` go to the session's model; None without a conversation.
    ``attended``: a user can answer.
    """

    transcript: Transcript
    tools: Callable[[], Mapping[str, Tool]]
    delegation: Delegation
    memory: TaskMemory
    results: Artifacts
    mode: PlanMode
    requests: ModelRequests | None = None
    attended: bool = False
    agents: Callable[[], AgentFiles] | None = None
    """Returns the agent files that steps may use."""
    history: ReadHistory = nothing_said
    """Returns the events of the session so far."""

    def roles(self) -> Mapping[str, str]:
        """Return the purpose of each agent by name. Reads files."""
        files = self.agents().look() if self.agents else ()
        return {file.spec.name: file.spec.description for file in files if file.usable}
