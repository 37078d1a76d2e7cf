"""What each room brings: tools that join, shares of the context report, checks. A new room adds a value here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ba_tui.assembly.tools import SessionTools
from ba_tui.core.ports.rooms import CheckResult, MarkedShare, RoomParts, ToolSource
from ba_tui.core.transcript import Transcript
from ba_tui.planning.workflows import flow_folders
from ba_tui.resources import Places, bundled
from ba_tui.settings import Settings
from ba_tui.skills.activation import MARK
from ba_tui.tools.workflows import Workflows


def session_rooms(tools: SessionTools, where: Places, trusted: Path | None) -> tuple[RoomParts, ...]:
    """For one session; ``trusted`` is the root of its project if the person trusts it."""
    registry, read = tools.registry, tools.ingress.raw
    workflows = Workflows(flow_folders(bundled("config"), where.config, trusted), read, registry.tools, tools.results)
    return (
        RoomParts("planning", tools=(ToolSource("workflow", workflows.look),)),
        RoomParts("skills", shares=(MarkedShare("Skills", MARK, tools.catalogue, active_skills),)),
    )


def checked_rooms(settings: Settings, where: Places, folder: Path) -> tuple[RoomParts, ...]:
    """For the doctor, in the order in which it reports. No session is begun."""

    def sandbox() -> Iterable[CheckResult]:
        from ba_tui.tools.running.sandbox_report import sandbox_report  # noqa: PLC0415 - it tries programs

        return [CheckResult("sandbox", *each) for each in sandbox_report(settings, where)]

    return (RoomParts("permissions", checks=(sandbox,)),)


def active_skills(transcript: Transcript) -> str:
    active = ", ".join(skill.id for skill in transcript.skills)
    return f"active: {active}" if active else ""
