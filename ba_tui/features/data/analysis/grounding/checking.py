"""Checks the figures of each final answer, and keeps the evidence of the session up to date for that.

Indexing and judging run in one thread of their own. Nothing of it is loaded before an answer has a figure; what came
before is read from the session's file then, so a resumed session costs nothing until somebody answers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from ba_tui.core.errors import BaError, off_loop
from ba_tui.core.events import (
    MAIN,
    Event,
    FiguresChecked,
    MessageDone,
    Notice,
    Steered,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from ba_tui.core.messages import Message, reminder
from ba_tui.core.questions import Option, Question
from ba_tui.core.text.figures import FigureReport, SourceFile
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.engine import Analysis
    from ba_tui.features.data.analysis.figures.verdicts import Checked
    from ba_tui.features.data.analysis.grounding.evidence_thread import EvidenceThread
    from ba_tui.features.data.analysis.grounding.observing import Observing

log = logging.getLogger(__name__)
Verify: TypeAlias = Literal["off", "show", "ask", "fix"]
KINDS = (TurnStarted, Steered, ToolStarted, ToolFinished, MessageDone, FiguresChecked)
"""Events that the evidence is made of."""
TAIL = 2_000
"""Events at the end of the file among which those may be that came while it was read."""
DIGIT = regex(r"\d")
CHECK, LEAVE = "Ask the model to check", "Leave as it is"
SHOWN = 5


@frozen
class FigureSources:
    """Where a session's numbers are read from: ``history`` its events so far, ``stored`` the beginning and the end of
    a stored result (blocks), ``engine`` the rows of query results."""

    history: Callable[[], Awaitable[Sequence[Event]]]
    stored: Callable[[str], str]
    engine: Analysis


class _Asked:
    """Whether the model was asked in this turn to check its figures."""

    def __init__(self) -> None:
        self.once = False


class FigureChecks:
    """core.agent.Interceptor for the main agent, and a listener of the session."""

    def __init__(self, verify: Verify, sources: FigureSources) -> None:
        self._verify = verify
        self._sources = sources
        self._thread: EvidenceThread | None = None
        self._meanwhile: list[Event] | None = None
        """What came while the history is read."""
        self._files: dict[str, Sequence[SourceFile]] = {}

    def apply(self, event: Event) -> None:
        """Index what belongs to the evidence, in the thread."""
        if not isinstance(event, KINDS):
            return
        if self._thread is not None:
            self._thread.add((event,))
        elif self._meanwhile is not None:
            self._meanwhile.append(event)

    async def before(self, branch: Branch) -> None:
        """Requests are not looked at."""

    async def after(self, reply: Message, branch: Branch) -> None:
        """Check a final answer that has figures. A failure is told and costs nothing but the verdicts."""
        if self._verify == "off" or branch.waiting or branch.name != MAIN or not DIGIT.search(reply.text):
            return
        try:
            thread = self._thread or await self._begun()
            report = await self._report(reply.text, thread)
        except Exception:
            log.exception("the figures of an answer could not be checked")
            branch.emit(Notice("The figures of this answer were not checked.", "warning", "ba doctor names the log."))
            return
        branch.emit(FiguresChecked(reply.id, report))
        if report.unsourced and self._verify in {"ask", "fix"} and not branch.state(_Asked).once:
            branch.state(_Asked).once = True
            if self._verify == "fix" or await _agrees(report, branch):
                branch.post(reminder(await thread.run(lambda seen: _words(reply.text, report, seen))))

    async def close(self) -> None:
        """Stop indexing; waits for the piece of work that runs."""
        if self._thread is not None:
            await off_loop(self._thread.close)

    async def _begun(self) -> EvidenceThread:
        """Read what happened so far, once."""
        from ba_tui.features.data.analysis.grounding.evidence_thread import EvidenceThread  # noqa: PLC0415 - not before a figure

        self._meanwhile = []
        events = await self._sources.history()
        self._thread = EvidenceThread(self._sources.stored)
        known = {(event.type, event.at) for event in events[-TAIL:]}
        later = [event for event in self._meanwhile if (event.type, event.at) not in known]
        self._meanwhile = None
        self._thread.add((*events, *later))
        return self._thread

    async def _report(self, answer: str, thread: EvidenceThread) -> FigureReport:
        checked = await thread.run(lambda seen: seen.checked(answer))
        if await self._looked_up(answer, checked, thread):
            checked = await thread.run(lambda seen: seen.checked(answer))
        await self._know_files(checked, await thread.run(lambda seen: frozenset(seen.tables)))
        return await thread.run(lambda seen: _reported(checked, seen, self._files))

    async def _looked_up(self, answer: str, checked: Checked, thread: EvidenceThread) -> bool:
        """Whether rows of long results that may hold unsourced figures joined the evidence."""
        long = await thread.run(lambda seen: seen.long)
        if not long or not any(verdict.unfounded for verdict in checked.verdicts):
            return False
        from ba_tui.features.data.analysis.grounding.looking_up import rows_for  # noqa: PLC0415 - only for long results

        rows = await rows_for(answer, checked, long, self._sources.engine)
        return await thread.run(lambda seen: seen.add_rows(rows))

    async def _know_files(self, checked: Checked, results: frozenset[str]) -> None:
        """Ask the engine once which files the ``results`` were read from that the answer uses."""
        used = results & {name for verdict in checked.verdicts for name in verdict.calls}
        if used - self._files.keys():
            from ba_tui.features.data.analysis.grounding.source_files import files_of  # noqa: PLC0415 - only for results

            with contextlib.suppress(BaError):
                self._files |= files_of(await self._sources.engine.catalogue())
            # Of a result that the engine does not know any more, nothing can be said.
            self._files |= dict.fromkeys(used - self._files.keys(), ())
        self._files = {name: files for name, files in self._files.items() if name in results}


def _reported(checked: Checked, seen: Observing, files: Mapping[str, Sequence[SourceFile]]) -> FigureReport:
    from ba_tui.features.data.analysis.grounding.reporting import report_of  # noqa: PLC0415 - not before the first figure
    from ba_tui.features.data.analysis.grounding.source_files import changed  # noqa: PLC0415 - likewise

    report = report_of(checked, seen.calls, files)
    used = {at for verdict in report.verdicts for at in verdict.files}
    return replace(report, changed=changed(report.files[at] for at in sorted(used)))


def _words(answer: str, report: FigureReport, seen: Observing) -> str:
    from ba_tui.features.data.analysis.grounding.following_up import follow_up  # noqa: PLC0415 - few answers need it

    return follow_up(answer, report, seen.evidence)


async def _agrees(report: FigureReport, branch: Branch) -> bool:
    """Whether the person wants the model to check the unsourced figures."""
    unsourced = report.unsourced
    named = ", ".join(verdict.text for verdict in unsourced[:SHOWN])
    more = f" and {len(unsourced) - SHOWN} more" if len(unsourced) > SHOWN else ""
    text = f"{count(len(unsourced), 'figure')} of this answer came from no result: {named}{more}."
    reply = await branch.ask(Question("choice", text, options=(Option(CHECK), Option(LEAVE))))
    return reply.choice == "text" and reply.text.strip() == CHECK
