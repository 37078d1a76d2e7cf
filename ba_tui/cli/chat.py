"""``ba [PROMPT]`` as typer sees it: its flags, for help, completion and lines with something wrong in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ba_tui.cli.flags import (
    COST,
    LOOPS,
    TIMEOUT,
    TOKENS,
    WARMEST,
    ChatFlags,
    Effort,
    Format,
    InputFormat,
    Mode,
    PromptTool,
)
from ba_tui.cli.launch import start_chat


def chat(  # noqa: PLR0913 - typer reads one parameter a flag
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="What you want to know or have done.")
    ] = None,
    print_: Annotated[
        bool, typer.Option("--print", "-p", help="Print one answer and exit; stdin joins the prompt.")
    ] = False,
    output_format: Annotated[Format | None, typer.Option(help="What -p prints.")] = None,
    continue_: Annotated[bool, typer.Option("--continue", "-c", help="Continue this folder's newest session.")] = False,
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", metavar="[ID|TEXT]", help="Resume a session (no ID: choose).")
    ] = None,
    fork: Annotated[
        bool, typer.Option("--fork", help="Continue in a copy; the session itself stays as it is.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="With -c or -r: sessions of ba -p as well.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="The model to ask.")
    ] = None,
    small_model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="The model for small work, such as summaries.")
    ] = None,
    reasoning_model: Annotated[
        str | None, typer.Option(metavar="PROVIDER/MODEL", help="The model that answers in plan mode.")
    ] = None,
    fallback_model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER/MODEL", help="The model while the main one is overloaded."),
    ] = None,
    effort: Annotated[Effort | None, typer.Option(help="How much effort the model spends.")] = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, max=WARMEST, metavar="0-2", help="Sampling temperature of the model.")
    ] = None,
    permission_mode: Annotated[Mode | None, typer.Option(help="What may run without asking.")] = None,
    yes_bypass_as_root: Annotated[
        bool, typer.Option("--yes-bypass-as-root", help="Allow bypass mode as root, outside a container.")
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
        int | None, typer.Option(min=LOOPS[0], max=LOOPS[1], metavar="N", help="Model requests within one turn (100).")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=COST, metavar="USD", help="Stop once the session has cost this much.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=TOKENS, metavar="N", help="Stop once the session has used this many tokens, in and out."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=TIMEOUT, metavar="SECONDS", help="With -p: stop after this long.")
    ] = None,
    strict_figures: Annotated[
        bool, typer.Option("--strict-figures", help="With -p: exit code 5 when a figure of the answer is unsourced.")
    ] = False,
    system_prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Use this system prompt instead of ba's.")
    ] = None,
    system_prompt_file: Annotated[Path | None, typer.Option(metavar="FILE", help="The same, from a file.")] = None,
    append_system_prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="Add to the system prompt.")] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Talk to this agent: its prompt, tools and model.")
    ] = None,
    agents: Annotated[str | None, typer.Option(metavar="JSON", help="More agents, as in Claude Code.")] = None,
    mcp_config: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="More MCP servers, from a file like .mcp.json. Repeatable.")
    ] = None,
    strict_mcp_config: Annotated[
        bool, typer.Option("--strict-mcp-config", help="Use only the MCP servers of --mcp-config.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Remember nothing of this session, and recall nothing.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="Trust this folder's current tools, hooks and settings; without it, -p ignores them."
        ),
    ] = False,
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="Work in this folder.")] = None,
    theme: Annotated[str | None, typer.Option(metavar="NAME", help="Colours: dark, light, …")] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours.")] = False,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="For programs: stream-json reads prompts in Claude Code's lines.")
    ] = None,
    include_partial_messages: Annotated[
        bool, typer.Option("--include-partial-messages", help="For programs: also pieces of answers.")
    ] = False,
    replay_user_messages: Annotated[
        bool, typer.Option("--replay-user-messages", help="For programs: repeat their prompts.")
    ] = False,
    permission_prompt_tool: Annotated[
        PromptTool | None, typer.Option(help="For programs: ask them for approvals (ba guide programs).")
    ] = None,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False,
) -> int:
    return start_chat(
        ChatFlags(
            prompt=prompt or None,
            print_=print_,
            output_format=output_format,
            input_format=input_format,
            include_partial_messages=include_partial_messages,
            replay_user_messages=replay_user_messages,
            permission_prompt_tool=permission_prompt_tool,
            continue_=continue_,
            resume=resume,
            fork=fork,
            all_=all_,
            model=model,
            small_model=small_model,
            reasoning_model=reasoning_model,
            fallback_model=fallback_model,
            effort=effort,
            temperature=temperature,
            permission_mode=permission_mode,
            yes_bypass_as_root=yes_bypass_as_root,
            allow=allow or None,
            ask=ask or None,
            deny=deny or None,
            add_dir=add_dir or None,
            agent=agent,
            agents=agents,
            mcp_config=mcp_config or None,
            strict_mcp_config=strict_mcp_config,
            max_loops=max_loops,
            max_cost=max_cost,
            max_tokens=max_tokens,
            timeout=timeout,
            strict_figures=strict_figures,
            system_prompt=system_prompt,
            system_prompt_file=system_prompt_file,
            append_system_prompt=append_system_prompt,
            private=private,
            trust=trust,
            cwd=cwd,
            theme=theme,
            no_color=no_color,
        )
    )
