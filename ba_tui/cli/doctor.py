"""``ba doctor``: prints what the doctor finds. What is looked at stands in ``ba_tui.observe.doctor``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line
from ba_tui.core.errors import StorageError
from ba_tui.resources import Places, places
from ba_tui.settings import printable

if TYPE_CHECKING:
    from ba_tui.core.ports.rooms import CheckResult
    from ba_tui.providers.access import ProviderAccess

NAMED = 5
"""Models of a server that are named."""
FIX = "Type its address in /setup, or correct it: ba config edit."
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def doctor(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Check that everything ba needs works, and say how to mend it. Exit 1 when something does not."""
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - --help must not pay for it
    from ba_tui.assembly.rooms import checked_rooms  # noqa: PLC0415
    from ba_tui.observe.doctor import Patient, examine  # noqa: PLC0415
    from ba_tui.providers.access import ProviderAccess  # noqa: PLC0415
    from ba_tui.providers.catalog import chosen_catalog  # noqa: PLC0415
    from ba_tui.tools.builtin.search import find_ripgrep  # noqa: PLC0415

    loaded, folder, where = load(cwd), folder_of(cwd), places()
    rooms = checked_rooms(loaded, where, folder, lambda: tools_alone(folder, {}).registry)
    checks = (finding for room in rooms for check in room.checks for finding in check())
    access = ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where)
    patient = Patient(where, loaded, find_ripgrep(), model=_model(access))
    findings: list[CheckResult] = []
    for finding in chain(examine(patient), _servers(access, where), checks):
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


def _model(access: ProviderAccess) -> str:
    """The model that would be asked; empty where the key file can't be understood, which is a finding of its own."""
    try:
        return access.default_model()
    except StorageError:
        return ""


def _servers(access: ProviderAccess, where: Places) -> Iterator[CheckResult]:
    """The model servers that answer, with what they serve, and those of the settings that do not."""
    from ba_tui.core.ports.rooms import CheckResult  # noqa: PLC0415 - see doctor
    from ba_tui.providers.setup import ProviderSetup  # noqa: PLC0415

    servers = asyncio.run(ProviderSetup(access, where).servers())
    if not servers:
        yield CheckResult("models", "ok", "no model server on the usual ports of this machine")
    for server in servers:
        names = ", ".join(printable(model.id) for model in server.models[:NAMED])
        more = len(server.models) - NAMED
        names += f" and {more:,} more" if more > 0 else ""
        place = f"{server.title} at {server.base_url}"
        if server.models:
            yield CheckResult("models", "ok", f"{place}: {names}")
        for line in server.troubles or (() if server.models else (f"{place} has no model yet.",)):
            yield CheckResult("models", "warn", printable(line), FIX)
