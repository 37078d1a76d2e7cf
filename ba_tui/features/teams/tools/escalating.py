"""Asks the person about a conflict, and calls another one with a command of theirs when nobody answers."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from dataclasses import asdict

from ba_tui.core.messages import clean_text
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.teamwork.teams import Conflict
from ba_tui.core.text.wording import one_line
from ba_tui.core.turn import Branch
from ba_tui.features.teams.engine.conflicts import camps
from ba_tui.features.teams.engine.wire import cleaned
from ba_tui.features.teams.tools.scope import Escalation
from ba_tui.processes.brief import BriefRun, run_in_thread

log = logging.getLogger(__name__)
TIMEOUT = 600.0
"""Seconds that the command may wait for an answer."""
MOST = 65_536
LABEL = 120


async def asked(conflict: Conflict, goal: str, branch: Branch, escalation: Escalation) -> str | None:
    """The value that the person chose or typed, or that the command printed; None when nobody answered."""
    options = [(f"{camp[0].value}", ", ".join(each.member for each in camp)) for camp in camps(conflict.claims)]
    question = Question(
        "choice",
        f"Members disagree about {conflict.key}. Which value counts?",
        options=tuple(Option(one_line(value, LABEL), f"says {who}") for value, who in options),
    )

    async def meanwhile() -> Reply:
        await asyncio.sleep(escalation.after)
        if (said := await called(conflict, goal, escalation)) is not None:
            return Reply("text", said, by="hook")
        return await asyncio.Event().wait() and Reply("deny")  # pragma: no cover - the person is waited for

    reply = await branch.ask(question, meanwhile if escalation.command else None)
    if reply.choice == "deny" and reply.by == "nobody":
        # Where nobody attends, the other person is the only one to ask.
        return await called(conflict, goal, escalation) if escalation.command else None
    text = reply.text.strip()
    if reply.choice == "deny" or not text:
        return None
    return next((value for value, _ in options if one_line(value, LABEL) == text), text)


async def called(conflict: Conflict, goal: str, escalation: Escalation) -> str | None:
    """What the command answered: its first line, if that is one of the values. Its failures are logged."""
    facts = {
        "event": "conflict",
        "goal": goal,
        "session_id": escalation.session,
        "key": conflict.key,
        "question": f"Members disagree about {conflict.key}. Which value counts?",
        "claims": [asdict(claim) for claim in conflict.claims],
    }
    shell = shutil.which("bash") or "/bin/sh"
    run = BriefRun(
        (shell, "-c", escalation.command), TIMEOUT, escalation.folder, escalation.environment,
        json.dumps(cleaned(facts, escalation.redact), default=str).encode(), MOST,
    )  # fmt: skip
    try:
        done = await run_in_thread(run)
    except (OSError, ValueError) as error:
        log.warning("team.escalate could not be started: %s", error)
        return None
    if done.code != 0:
        log.warning("team.escalate failed (%s): %s", done.trouble or done.code, one_line(_text(done.errors), 200))
        return None
    lines = _text(done.output).strip().splitlines()
    values = {str(claim.value).strip().casefold(): str(claim.value) for claim in conflict.claims}
    return values.get(lines[0].strip().casefold()) if lines else None


def _text(data: bytes) -> str:
    return clean_text(data.decode("utf-8", "replace"))
