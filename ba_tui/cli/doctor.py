"""``ba doctor``: print the results of the checks in ``ba_tui.assembly.doctor``."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from ba_tui.assembly.doctor import examined
from ba_tui.cli.config import Cwd, folder_of
from ba_tui.cli.streams import print_line
from ba_tui.core.ports.contributions import CheckResult

MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def doctor(json_: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False, cwd: Cwd = None) -> int:
    """Check ba's setup, and say how to fix each problem. Exit 1 when a check fails."""
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
