"""Asks the person at the lead whether a call may run at a worker of another machine."""

from __future__ import annotations

import asyncio

from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question, Reply
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.asking.approvals import CallQuestion
from ba_tui.permissions.warnings import warnings_of

NAME = 80


async def approved(asked: CallQuestion, branch: Branch) -> Reply:
    """What the person says. Cancelling withdraws the question."""
    question = await asyncio.to_thread(_question, asked)
    # Under the worker's name: the dialog says who asks, and the question can be withdrawn.
    aside = branch.aside(f"{branch.name}/{_line(asked.member).replace('/', ' ')}")
    return await aside.ask(question)


def _question(asked: CallQuestion) -> Question:
    tool, member = _line(asked.tool), _line(asked.member)
    why = f" It says: {sentence(paintable(asked.reason, newlines=False))}" if asked.reason else ""
    needs = f"The agent {_line(asked.agent)} of {member} needs it for the subtask {_line(asked.task)}."
    reason = f"{needs}{why} A yes counts once."
    return Question(
        "permission",
        f"Allow {tool} on another machine?",
        tool=tool,
        args=clean_json(dict(asked.args)),
        reason=reason,
        risks=asked.risks,
        warnings=warnings_of(asked.args),
        timeout=asked.seconds,
        # Nothing is remembered, and the arguments stay as the worker's rules judged them.
        fixed=True,
    )


def _line(text: str) -> str:
    return one_line(paintable(text, newlines=False), NAME)
