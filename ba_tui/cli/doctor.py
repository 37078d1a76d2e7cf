"""``ba doctor``: prints what the doctor finds. What is looked at stands in ``ba_tui.observe.doctor``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line, rule_problems
from ba_tui.core.errors import StorageError, UsageError
from ba_tui.resources import places, project_root
from ba_tui.settings import printable

if TYPE_CHECKING:
    from ba_tui.core.ports.rooms import CheckResult
    from ba_tui.settings import Loaded

NAMED = 5
"""Models of a server that are named."""
FIX = "Type its address in /setup, or correct it: ba config edit."
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def doctor(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Check that everything ba needs works, and say how to mend it. Exit 1 when something does not."""
    from ba_tui.assembly.rooms import checked_rooms  # noqa: PLC0415 - --help must not pay for it
    from ba_tui.observe.doctor import Patient, examine  # noqa: PLC0415
    from ba_tui.permissions.trust.grants import Trust  # noqa: PLC0415
    from ba_tui.tools.builtin.search import find_ripgrep  # noqa: PLC0415

    loaded = load(cwd)
    findings: list[CheckResult] = []
    folder = folder_of(cwd)
    problems, standing = rule_problems(loaded, folder), Trust(places()).look(project_root(folder))
    place, model, tools = places(), _model(loaded), _tool_problems(folder)
    rooms = checked_rooms(loaded.settings, place, folder)
    checks = [finding for room in rooms for check in room.checks for finding in check()]
    checks += _servers(loaded)
    patient = Patient(place, loaded, find_ripgrep(), problems, None, tools, checks, standing, model)
    for finding in examine(patient):
        findings.append(finding)
        if not json_:
            print_line(f"{MARKS[finding.state]}  {finding.name:<13} {finding.text}")
            if finding.fix and finding.state != "ok":
                print_line(f"{'':19} → {finding.fix}")
            for line in finding.detail.splitlines():
                print_line(f"{'':21} {line}")
    failed = any(finding.state == "fail" for finding in findings)
    if json_:
        report = {"ok": not failed, "findings": [dataclasses.asdict(finding) for finding in findings]}
        print_line(json.dumps(report, indent=2))
    return 1 if failed else 0


def _model(loaded: Loaded) -> str:
    """The model that would be asked; empty where the key file can't be understood, which is a finding of its own."""
    from ba_tui.assembly import model_asked  # noqa: PLC0415 - see doctor

    try:
        return model_asked(loaded)
    except StorageError:
        return ""


def _servers(loaded: Loaded) -> list[CheckResult]:
    """The model servers that answer, with what they serve, and those of the settings that do not."""
    from ba_tui.core.ports.rooms import CheckResult  # noqa: PLC0415 - see doctor
    from ba_tui.providers.access import ProviderAccess  # noqa: PLC0415
    from ba_tui.providers.catalog import chosen_catalog  # noqa: PLC0415
    from ba_tui.providers.setup import ProviderSetup  # noqa: PLC0415

    place = places()
    access = ProviderAccess(loaded, chosen_catalog(place, strict=False)[0], place)
    found: list[CheckResult] = []
    for server in asyncio.run(ProviderSetup(access, place).servers()):
        names = ", ".join(printable(model.id) for model in server.models[:NAMED])
        more = len(server.models) - NAMED
        names += f" and {more:,} more" if more > 0 else ""
        where = f"{server.title} at {server.base_url}"
        if server.models:
            found.append(CheckResult("models", "ok", f"{where}: {names}"))
        troubles = server.troubles or (() if server.models else (f"{where} has no model yet.",))
        found += [CheckResult("models", "warn", printable(line), FIX) for line in troubles]
    return found or [CheckResult("models", "ok", "no model server on the usual ports of this machine")]


def _tool_problems(folder: Path) -> list[tuple[str, str]]:
    """What keeps tools out of ``folder``; nothing when the settings themselves are wrong, which is told before."""
    from ba_tui.assembly import registry_for  # noqa: PLC0415 - see doctor

    try:
        registry = registry_for(folder)
    except UsageError:
        return []
    try:
        return [(str(problem), problem.trace) for problem in registry.problems()]
    finally:
        registry.close()
