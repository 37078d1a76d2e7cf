"""The table of commands: those of the base, then those of features. Help lists them in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ba_tui.command import AppParts, Command, Guesses, ShellParts, read_guesses
from ba_tui.feature import known_features

TUI = "ba_tui.faces.tui"
_ROWS = (
    Command("chat", cli="ba_tui.cli.application:chat", hidden=True),
    Command("help", "Keys and commands", "screens.help:show_help", keys="f1"),
    Command("demo", cli="ba_tui.cli.demo:demo", help="Take the guided tour: real tools, sample data."),
    Command(
        "guide",
        "Read how to do things",
        "screens.help:guide",
        "[topic]",
        choices=f"{TUI}.screens.help:topics",
        cli="ba_tui.cli.guide:guide",
        help="Print a page of the guide, or the list of its topics.",
    ),
    Command("clear", "Start a new session", "acts.sessions:clear", aliases=("new", "reset")),
    Command(
        "resume", "Resume an earlier session", "screens.sessions:resume", "[words]", aliases=("sessions", "continue")
    ),
    Command("fork", "Continue in a copy of this session", "acts.sessions:fork", aliases=("branch",)),
    Command(
        "rewind",
        "Rewind conversation, files or both to an earlier prompt",
        "screens.rewind:rewind",
        "[turn|undo]",
        aliases=("undo", "checkpoint"),
    ),
    Command("redo", "Take the last rewind back", "screens.rewind:redo"),
    Command("diff", "Show file changes since this session began", "screens.rewind:diff"),
    Command("rename", "Rename this session", "acts.sessions:rename", "<title>"),
    Command("export", "Write this session to a file", "acts.sessions:export", "[md|html|json|jsonl] [file]"),
    Command("copy", "Copy the newest answer, or the n-th from the end", "acts.sessions:copy", "[n]", keys="ctrl+y"),
    Command("transcript", "Read the whole session in $PAGER", "acts.editor:transcript"),
    Command(
        "sessions",
        cli="ba_tui.cli.sessions:app",
        help="List, show, search, export, import, fork, compare and delete sessions.",
    ),
    Command(
        "model", "Choose the model", "screens.models:model", "[small|reasoning] [provider/model]", aliases=("models",)
    ),
    Command("mode", "Change the permission mode", "acts.sessions:mode", "[name]"),
    Command(
        "permissions",
        "View and edit permissions",
        "screens.permissions:permissions",
        aliases=("allowed-tools", "approvals"),
        cli="ba_tui.cli.permissions:app",
        help="List, check, add and remove permission rules.",
    ),
    Command(
        "cycle-mode", "Switch to the next permission mode", "acts.sessions:cycle_mode", keys="shift+tab", slash=False
    ),
    Command(
        "trust",
        "Show or change whether this folder is trusted",
        "screens.trust:trust",
        cli="ba_tui.cli.trust:trust",
        help="Trust a folder, or show what it contains.",
    ),
    Command("add-dir", "Add a folder to work in, until ba ends", "screens.trust:add_dir", "<folder>", paths=True),
    Command("context", "Show what fills the context window", "screens.context:context"),
    Command("status", "Show session, model, mode, folder and sandbox", "screens.status:status"),
    Command("cost", "Show tokens and cost by model and turn", "screens.context:cost", aliases=("usage", "stats")),
    Command(
        "compact",
        "Compress the conversation, or undo it",
        "acts.sessions:compact",
        "[focus|undo]",
        aliases=("compress", "summarize"),
    ),
    Command(
        "config",
        "Show and change settings",
        "screens.config:config",
        "[words]",
        aliases=("settings",),
        cli="ba_tui.cli.config:app",
        help="Show, check and change settings.",
    ),
    Command(
        "audit",
        cli="ba_tui.cli.audit:audit",
        help="List every decision about a tool call: when, by whom, by which rule.",
    ),
    Command(
        "tools",
        "View tools and switch them on or off",
        "screens.tools:tools",
        cli="ba_tui.cli.tools:app",
        help="List, show, try and write tools.",
    ),
    Command(
        "skills",
        "View, start, end and check skills",
        "screens.skills:skills",
        cli="ba_tui.cli.skills:app",
        help="List, show, check, install, write and remove skills.",
    ),
    Command("shells", "List background commands", "screens.status:shells", aliases=("tasks", "bashes", "ps")),
    Command("background", "Move command to background", "acts.view:background", keys="ctrl+b"),
    Command("shell", "Run a command yourself; the same as !command", "acts.prompts:shell", "<command>"),
    Command("sql", "Query data yourself, on files or @SOURCE; the model reads it", "acts.prompts:sql", "<SELECT …>"),
    Command("theme", "Choose the colours", "screens.models:theme", "[name]", aliases=("themes",)),
    Command("setup", "Connect a model", "screens.models:setup", aliases=("login", "connect")),
    Command(
        "tokens",
        cli="ba_tui.cli.tokens:tokens",
        help="Count the tokens of text files: how many, by which family and margin, whether that is exact, and as "
        "a message.",
    ),
    Command(
        "doctor",
        "Check that everything works",
        "screens.status:doctor",
        cli="ba_tui.cli.doctor:doctor",
        help="Check ba's setup, and say how to fix each problem.",
    ),
    Command("todos", "Show or hide todos and plan steps", "acts.view:todos", keys="ctrl+t"),
    Command("panel", "Show or hide the side panel", "acts.view:panel", keys="f3"),
    Command(
        "inspector", "Open the newest tool result in full", "acts.view:inspector", aliases=("details",), keys="ctrl+o"
    ),
    Command("notices", "Read notices again", "screens.status:notices"),
    Command("history", "Search earlier prompts", "acts.view:search_history", keys="ctrl+r"),
    Command("editor", "Write the prompt in $EDITOR", "acts.editor:editor", keys="ctrl+g"),
    Command("redraw", "Draw the screen again", "acts.view:redraw", keys="ctrl+l"),
    Command(
        "interrupt",
        "Close or interrupt; twice: clear the input, or rewind",
        "acts.view:escape",
        keys="escape",
        slash=False,
    ),
    Command("earlier", "Scroll the conversation up", "acts.view:page_up", keys="pageup", slash=False),
    Command("later", "Scroll the conversation down", "acts.view:page_down", keys="pagedown", slash=False),
    Command("start", "Go to the first line of the conversation", "acts.view:to_start", keys="ctrl+home", slash=False),
    Command("end", "Go to the newest line of the conversation", "acts.view:to_end", keys="ctrl+end", slash=False),
    Command("suspend", "Suspend ba", "acts.view:suspend", keys="ctrl+z", slash=False),
    Command("exit", "Quit (session is saved)", "acts.sessions:leave", aliases=("quit", "q")),
)
"""``run`` is below the package of the app."""
BASE = AppParts(
    commands=tuple(replace(row, run=row.run and f"{TUI}.{row.run}") for row in _ROWS),
    panes=tuple(
        f"{TUI}.panes:{name}" for name in ("QuestionFold", "Attention", "NextPrompt", "MeterFold", "ShellCount")
    ),
)


@cache
def app_parts() -> AppParts:
    """Return the parts that the base and all features add to the app."""
    return AppParts.joined((BASE, *(feature.app for feature in known_features())))


@cache
def shell_commands() -> Mapping[str, Command]:
    """Return the commands of the command line, by name."""
    return {row.name: row for row in app_parts().commands if row.cli}


def guesses() -> Guesses:
    """Return the words of other programs, read from a file at the first call."""
    return read_guesses(app_parts().guesses)


def shell_parts() -> ShellParts:
    """Return the parts of the one feature that adds to the command line."""
    return next((feature.shell for feature in known_features() if feature.shell.translate), ShellParts())
