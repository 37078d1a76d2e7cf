"""Open the figures feature of a session.

Answers without a figure load nothing else of the feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ba_tui.core.errors import off_loop
from ba_tui.core.events import MAIN, Event
from ba_tui.core.messages import Message
from ba_tui.core.text.patterns import regex
from ba_tui.core.turn import Branch
from ba_tui.core.values import Once, late
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_main

if TYPE_CHECKING:
    from ba_tui.features.figures.session_checks import FigureChecks

DIGIT = regex(r"\d")


class FigureInterceptor:
    """core.agent.Interceptor of the main agent, and a listener: passes answers with digits to FigureChecks."""

    def __init__(self, context: SessionContext) -> None:
        self._checks: Once[FigureChecks] = Once(
            lambda: late("ba_tui.features.figures.session_checks:FigureChecks")(context)
        )

    def apply(self, event: Event) -> None:
        if self._checks.made:
            self._checks.made.apply(event)

    async def before(self, branch: Branch) -> None:
        """Continue: only answers have figures."""

    async def after(self, reply: Message, branch: Branch) -> None:
        """Check a final answer that has digits."""
        if not branch.waiting and branch.name == MAIN and DIGIT.search(reply.text):
            checks = await off_loop(self._checks)
            await checks.after(reply, branch)

    async def close(self) -> None:
        if self._checks.made:
            await self._checks.made.close()


def open_figures(context: SessionContext) -> OpenFeature:
    """Open the feature. With ``analysis.verify: off`` it adds nothing."""
    if context.loaded.settings.analysis.verify == "off":
        return OpenFeature()
    figures = FigureInterceptor(context)
    return OpenFeature(
        interceptors=((Stage.VERIFY, for_main(figures)),), listeners=(figures.apply,), close=figures.close
    )
