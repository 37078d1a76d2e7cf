"""For the doctor: how well commands are confined here, tried out, and what would improve it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.from_settings import sandbox_for
from ba_tui.resources import Places
from ba_tui.settings import Settings

ConfinementReport: TypeAlias = tuple[Literal["ok", "warn", "fail"], str, str]
"""One line for the doctor: how it is, in words, and what would mend it."""
CURES = {
    "required": "Install bubblewrap (its program is bwrap); until then commands are refused. See ba guide sandbox.",
    "auto": "Install bubblewrap (its program is bwrap); until then ba asks before each command that no rule allows. "
    "See ba guide sandbox.",
}
FORBIDDEN = (
    "This system blocks user namespaces. Installing your distribution's bubblewrap package usually helps. "
    "See ba guide sandbox."
)
BROKEN = "Please report it, with your kernel and distribution; until then set sandbox to off, so that commands ask."
SHORT_LIST = "without a sandbox only a short list of commands that read runs without asking"
HOLDS = {
    "reading": "writes nothing, sees no secrets, no network and no settings of yours",
    "working": "writes the workspace but no protected files, sees no secrets, no network and no settings of yours",
}
ROOT = "; as root it changes no kernel settings, makes no setuid files and starts no more processes than allowed"


def sandbox_report(settings: Settings, where: Places) -> list[ConfinementReport]:
    """For the doctor: how well commands are confined here, tried out, and what would mend it."""
    if settings.sandbox == "off":
        return [("warn", "turned off in the settings: commands run with all your rights", "ba config set sandbox auto")]
    sandbox = sandbox_for(settings, where, Workspace(Path(tempfile.gettempdir())))
    found = sandbox.found
    troubles = "; ".join(found.troubles)
    forbidden = any(word in troubles.lower() for word in ("uid map", "namespace", "not permitted", "denied"))
    if found.mechanism is None:
        why = f": {troubles}" if troubles else ""
        fix = FORBIDDEN if forbidden else CURES[settings.sandbox]
        state = "fail" if settings.sandbox == "required" else "warn"
        return [(state, f"no sandbox works here{why}", fix), ("warn", SHORT_LIST, fix)]
    closed = "off, but for hosts that you allow" if found.mechanism.walled else "off"
    network = "on" if settings.commands.network else closed
    text = f"{found.mechanism.name} confines commands ({found.mechanism.guards}); their network is {network}"
    weak = not found.mechanism.separate and sys.platform == "linux"
    fix = (FORBIDDEN if forbidden else CURES["auto"]) if weak else ""
    first: ConfinementReport = (
        "warn" if weak else "ok",
        f"{text}; {troubles or 'there is no bubblewrap'}" if weak else text,
        fix,
    )
    return [first, *_tried(sandbox, fix)]


def _tried(sandbox: Sandbox, fix: str) -> Iterator[ConfinementReport]:
    """What came of trying each profile."""
    from ba_tui.tools.running.sandbox_trial import try_out  # noqa: PLC0415 - for the doctor alone

    trials = try_out(sandbox)
    if all(trial.profile != "reading" for trial in trials):
        yield "warn", SHORT_LIST, fix
    for trial in trials:
        if trial.trouble:
            yield "fail", f"the profile {trial.profile} could not be tested: {trial.trouble}", fix or BROKEN
        elif trial.broken:
            state = "warn" if fix else "fail"
            yield (
                state,
                f"the profile {trial.profile} was tested and does not hold: it {', '.join(trial.broken)}",
                fix or BROKEN,
            )
        else:
            more = ROOT if os.geteuid() == 0 else ""
            yield "ok", f"the profile {trial.profile} was tested and holds: {HOLDS[trial.profile]}{more}", ""
