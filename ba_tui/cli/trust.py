"""``ba trust``: show the code and settings in a folder, trust the folder, or revoke the trust.

``ba_tui.permissions.trust.grants`` decides what needs trust and stores it.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ba_tui.cli.config import folder_of
from ba_tui.cli.streams import print_line, say
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import AskedSetting, TrustState
from ba_tui.core.text.wording import count
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import places, project_root
from ba_tui.settings import printable
from ba_tui.settings.setters import allowing

WORDS = {
    "trusted": "{root} is trusted (current contents).",
    "unknown": "{root} is not trusted.",
    "changed": "{root} was trusted, but its contents have changed.",
}
LET_RUN = "Trust this folder? Its tools, hooks and MCP servers are programs: they can do whatever you can."
LET_READ = "Let models read these files as instructions?"


def trust(
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="The current folder by default.")] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Only show its contents; exit 1 when it is not trusted.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Stop trusting the folder.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    allow_setting: Annotated[
        list[str] | None,
        typer.Option("--allow-setting", metavar="KEY=VALUE", help="Allow a value that its settings ask for."),
    ] = None,
) -> int:
    """Trust a folder, or show what it contains.

    Trust covers its tools, MCP servers, workflows, skills, hooks, commands and settings with their current contents;
    when one of them changes, ba asks again. In a folder that is not trusted ba only reads; `ba -p` goes by its flags
    instead and loads none of these. Hosts, folders and model files in its settings need a yes for each, also with
    --yes. Files that tools of ba wrote are accepted only in a terminal.
    """
    from ba_tui.assembly.start import trust_for  # noqa: PLC0415 - other commands import this module

    if folder and not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.", "Name an existing folder.")
    if show and revoke:
        raise UsageError("--show and --revoke exclude each other.", "Give one of them.")
    cwd = folder_of(folder)
    root, granted = project_root(cwd), trust_for(places(), cwd)
    if revoke:
        taken = granted.revoke(root)
        print_line(printable(f"{root} is no longer trusted." if taken else f"{root} was not trusted."))
        return 0
    seen, asked = granted.look(root), granted.asked(root)
    _tell(seen)
    for each in asked:
        state = "allowed" if each.allowed else "not allowed"
        print_line(printable(f"{'asks':<11}       {each.setting}={each.value} ({state})"))
    if show:
        return 0 if seen.state == "trusted" else 1
    if seen.trouble:
        raise UsageError(printable(seen.trouble))
    chosen = _chosen(asked, allow_setting or ())
    if seen.state != "trusted" or seen.written:
        if not _trusts(seen, yes=yes):
            return 1
        if yes:
            granted.vouch(seen)
            for each in seen.written:
                say(printable(f"{each.line}. Models do not read it until you accept it: run `ba trust` in a terminal."))
        else:
            granted.grant(seen)
        print_line(printable(WORDS["trusted"].format(root=root)))
    for each in (each for each in asked if not each.allowed):
        if each in chosen or (not yes and sys.stdin.isatty() and typer.confirm(printable(each.question))):
            granted.allow(root, each)
            print_line(printable(f"Allowed: {each.setting}={each.value}"))
        else:
            say(f"{each.source}: {each.setting} is left out. {allowing(each)}")
    return 0


def _chosen(asked: Sequence[AskedSetting], texts: Sequence[str]) -> Sequence[AskedSetting]:
    """Return the settings that --allow-setting names. Raises UsageError for a value the project does not request."""
    if bare := [text for text in texts if "=" not in text]:
        hint = f"Write --allow-setting {bare[0]}=VALUE, as ba trust --show prints it."
        raise UsageError(f"--allow-setting {bare[0]} has no value.", hint)
    known = {f"{each.setting}={each.value}": each for each in asked}
    if wrong := [text for text in texts if text not in known]:
        raise UsageError(f"This project does not ask for {wrong[0]}.", "See ba trust --show.")
    return [known[text] for text in texts]


def _trusts(seen: TrustState, *, yes: bool) -> bool:
    """Ask whether the user trusts the folder as shown. Raises UsageError without a terminal to ask in."""
    if not yes:
        if not sys.stdin.isatty():
            hint = "then run `ba trust` in a terminal." if seen.written else "then run: ba trust --yes"
            raise UsageError("No terminal to ask on.", f"Review the folder with --show, {hint}")
        return typer.confirm(LET_READ if seen.state == "trusted" else LET_RUN)
    return True


def untrusted(root: Path) -> str:
    """Return a message about the contents that ba ignores until the folder is trusted; empty when there are none."""
    seen = Trust(places()).look(root)
    if seen.trouble:
        return f"{seen.trouble} ba loads none of it."
    if seen.state == "trusted" or not seen.holds:
        return ""
    brought = ", ".join(part.kind for part in seen.holds)
    return f"{root} has {brought} that are not trusted, so ba does not load them. Review them, then run: ba trust"


def _tell(seen: TrustState) -> None:
    print_line(printable(WORDS[seen.state].format(root=seen.root)))
    if seen.warning:
        print_line(seen.warning)
    if not seen.holds and not seen.trouble:
        print_line("This folder has no tools, hooks or settings.")
    for part in seen.holds:
        lead = f"{part.kind:<11}  {len(part.names):>3}  "
        # One line for each server, so that its whole command can be read.
        for text in part.names if part.kind == "MCP servers" else (", ".join(part.names),):
            print_line(printable(f"{lead}{text}"))
            lead = " " * len(lead)
    for link in seen.links:
        print_line(printable(f"{'link':<11}       {link}"))
    for text in seen.refused:
        print_line(printable(f"{'left out':<11}       {text}"))
    lead = "by tools"
    for each in seen.written:
        print_line(printable(f"{lead:<11}       {each.line}"))
        lead = ""
    written = {each.name for each in seen.written}
    for file in seen.files:
        if file.before is None and file.path not in written:
            print_line(printable(f"{file.path}  ({count(len(file.after.splitlines()), 'line')})"))
            continue
        before, after = (file.before or "").splitlines(), file.after.splitlines()
        for text in difflib.unified_diff(before, after, file.path, file.path, lineterm=""):
            print_line(printable(text))
