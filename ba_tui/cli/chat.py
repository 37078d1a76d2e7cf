"""``ba [PROMPT]``: what its flags mean, and which face opens."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ba_tui.cli.launch import folder_of, open_app
from ba_tui.cli.streams import output_failed, read_input
from ba_tui.core.errors import UsageError
from ba_tui.core.start import Start

Format = Literal["text", "json", "stream-json"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
Mode = Literal["default", "accept-edits", "plan", "auto", "bypass"]


def chat(  # noqa: PLR0913 - typer reads one parameter a flag
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="What you want to know or have done.")
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", "-p", help="Print one answer and exit; stdin joins the prompt.")
    ] = False,
    output_format: Annotated[Format | None, typer.Option(help="What -p prints.")] = None,
    continue_: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with this folder's newest session.")
    ] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", metavar="[ID|TEXT]", help="Go on with a session; bare: pick one.")
    ] = None,
    fork: Annotated[bool, typer.Option("--fork", help="Go on in a copy; the session itself stays as it is.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="The model to ask.")
    ] = None,
    small_model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="The model for small work, such as summaries.")
    ] = None,
    reasoning_model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="The model that answers in plan mode.")
    ] = None,
    effort: Annotated[Effort | None, typer.Option(help="How hard the model should think.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=2, metavar="0-2", help="How freely the model answers.")
    ] = None,
    permission_mode: Annotated[Mode | None, typer.Option(help="What may run without asking.")] = None,
    yes_bypass_as_root: Annotated[
        bool, typer.Option("--yes-bypass-as-root", help="Take mode bypass as root, outside a container.")
    ] = False,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Allow, e.g. 'edit_file(src/**)'. Repeatable.")
    ] = None,
    ask: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Always ask. Repeatable.")] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Never allow. Repeatable.")] = None,
    add_dir: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Another folder to work in. Repeatable.")
    ] = None,
    max_loops: Annotated[
        int | None, typer.Option(min=1, max=500, metavar="N", help="Model requests within one turn (100).")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0001, metavar="USD", help="Stop once the session has cost this much.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop once it has used so many tokens, in and out.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.1, metavar="SECONDS", help="With -p: stop after this long.")
    ] = None,
    system_prompt_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Use this system prompt instead of ba's.")
    ] = None,
    append_system_prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="Add to the system prompt.")] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Trust this folder with what it brings now; without, -p leaves that out.")
    ] = False,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="Work in this folder.")] = None,
    theme: Annotated[str | None, typer.Option(metavar="NAME", help="Colours: dark, light, …")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
) -> int:
    folder = folder_of(cwd)
    if missing := [path for path in add_dir or () if not path.expanduser().is_dir()]:
        raise UsageError(f"There is no folder {missing[0]}.", "Check --add-dir.")
    if fork and not (continue_ or resume):
        raise UsageError("--fork goes on in a copy of a session, and none is named.", "Add -c, or -r ID.")
    flags: dict[str, object] = {
        "model": model,
        "small.model": small_model,
        "reasoning.model": reasoning_model,
        "effort": effort,
        "temperature": temperature,
        "permission_mode": permission_mode,
        "output_format": output_format,
        "permissions.allow": allow,
        "permissions.ask": ask,
        "permissions.deny": deny,
        "add_dirs": [str(path) for path in add_dir] if add_dir else None,
        "max_loops": max_loops,
        "max_cost": max_cost,
        "max_tokens": max_tokens,
        "system_prompt_file": str(system_prompt_file) if system_prompt_file else None,
        "append_system_prompt": append_system_prompt,
        "theme": theme,
    }
    flags = {key: value for key, value in flags.items() if value is not None}
    if permission_mode == "bypass":
        from ba_tui.permissions.bounds import check_bypass  # noqa: PLC0415 - only where it is used: --help stays quick

        check_bypass(yes_bypass_as_root)
    if trust:
        from ba_tui.permissions.trust.grants import trust_folder  # noqa: PLC0415 - only where it is used

        trust_folder(folder)
    # Where the locale says ASCII, Python has taken the bytes of other letters apart.
    words = os.fsencode(" ".join(prompt or ())).decode("utf-8", "surrogateescape")
    start = Start(words, "last" if continue_ else resume, fork, theme or "", not no_color)
    if not print_:
        return open_app(flags, start, folder)
    if start.resume == "pick":
        raise UsageError("-p can't show the session picker.", "Name a session: ba -p -r ID, or use -c.")
    # Before the loop runs: while it does, the first Ctrl+C would be for a turn.
    start = replace(start, prompt=_prompt(start.prompt))
    if not start.prompt.strip():
        raise UsageError("The prompt is empty.", "Type what you want to know or have done.")
    return asyncio.run(_print(flags, start, folder, timeout))


async def _print(flags: dict[str, object], start: Start, folder: Path, timeout: float | None) -> int:
    from ba_tui.assembly import connect  # noqa: PLC0415 - only where it is used: --help stays quick
    from ba_tui.faces.headless import Printer, speak  # noqa: PLC0415

    services = connect(flags, folder, strict=True)
    printer = Printer(services.output_format, sys.stdout, sys.stderr)
    code = await speak(services, Start(start.prompt, start.resume, start.fork), printer, timeout)
    return output_failed(printer.lost, wanted=True) if printer.lost else code


def _prompt(words: str) -> str:
    """The prompt and what was piped in, below it."""
    piped: Sequence[str] = ()
    if not sys.stdin.isatty():
        data = read_input().decode("utf-8", "replace")
        piped = (data,) if data.strip() else ()
    return "\n\n".join(part for part in (words, *piped) if part)
