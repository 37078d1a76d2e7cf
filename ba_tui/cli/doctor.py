"""``ba doctor``: prints what the doctor finds. What is looked at stands in ``ba_tui.observe.doctor``."""

from __future__ import annotations

import dataclasses
import json
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, load, print_line
from ba_tui.core.errors import StorageError
from ba_tui.resources import places

if TYPE_CHECKING:
    from ba_tui.settings import Loaded

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def doctor(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Check that everything ba needs works, and say how to mend it. Exit 1 when something does not."""
    from ba_tui.assembly import tools_alone  # noqa: PLC0415 - --help must not pay for it
    from ba_tui.assembly.rooms import checked_rooms  # noqa: PLC0415
    from ba_tui.core.ports.rooms import CheckResult  # noqa: PLC0415
    from ba_tui.observe.doctor import Patient, examine  # noqa: PLC0415
    from ba_tui.tools.builtin.search import find_ripgrep  # noqa: PLC0415

    loaded, folder, where = load(cwd), folder_of(cwd), places()
    rooms = checked_rooms(loaded, where, folder, lambda: tools_alone(folder, {}).registry)
    checks = (finding for room in rooms for check in room.checks for finding in check())
    patient = Patient(where, loaded, find_ripgrep(), model=_model(loaded))
    findings: list[CheckResult] = []
    for finding in chain(examine(patient), checks):
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
    from ba_tui.providers.access import ProviderAccess  # noqa: PLC0415 - see doctor
    from ba_tui.providers.catalog import chosen_catalog  # noqa: PLC0415

    where = places()
    try:
        return ProviderAccess(loaded, chosen_catalog(where, strict=False)[0], where).default_model()
    except StorageError:
        return ""
