"""``ba doctor``: prints what the doctor finds. What is looked at stands in ``ba_tui.assembly.doctor``."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from ba_tui.cli.config import Cwd, folder_of, print_line

if TYPE_CHECKING:
    from ba_tui.core.ports.rooms import CheckResult

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def doctor(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Check that everything ba needs works, and say how to mend it. Exit 1 when something does not."""
    from ba_tui.assembly.doctor import examined  # noqa: PLC0415 - --help must not pay for it

    findings: list[CheckResult] = []
    for finding in examined(folder_of(cwd)):
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
