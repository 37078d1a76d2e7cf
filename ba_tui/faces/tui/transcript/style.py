"""The transcript's colours and keys: theme variables only, one component class a role."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from ba_tui.faces.tui.transcript.palette import ROLES

COMPONENTS = frozenset(f"transcript--{role.replace('_', '-')}" for role in ROLES if role != "selection")

CSS = """
TranscriptView {
    background: $background;
    color: $foreground;
    overflow-x: hidden;
    overflow-y: scroll;
    scrollbar-size-vertical: 1;
    scrollbar-background: $background;
    scrollbar-background-hover: $background;
    scrollbar-background-active: $background;
    scrollbar-color: $foreground 20%;
    scrollbar-color-hover: $foreground 35%;
    scrollbar-color-active: $primary;

    & > .transcript--text { color: $foreground; }
    & > .transcript--dim { color: $text-muted; }
    & > .transcript--title { color: $text-primary; text-style: bold; }
    & > .transcript--heading { color: $foreground; text-style: bold; }
    & > .transcript--code { color: $text-accent; background: $foreground 6%; }
    & > .transcript--block { color: $foreground; background: $foreground 5%; }
    & > .transcript--label { color: $text-muted; background: $foreground 5%; }
    & > .transcript--quote { color: $foreground 85%; }
    & > .transcript--rule { color: $foreground 30%; }
    & > .transcript--prompt { color: $foreground; background: $primary 14%; }
    & > .transcript--prompt-mark { color: $text-primary; background: $primary 14%; text-style: bold; }
    & > .transcript--thought { color: $text-muted; text-style: italic; }
    & > .transcript--name { color: $foreground; text-style: bold; }
    & > .transcript--target { color: $foreground 85%; }
    & > .transcript--ok { color: $text-success; }
    & > .transcript--failed { color: $text-error; }
    & > .transcript--denied { color: $text-warning; }
    & > .transcript--running { color: $text-primary; }
    & > .transcript--waiting { color: $text-warning; text-style: bold; }
    & > .transcript--warning { color: $text-warning; }
    & > .transcript--focus { color: $primary; }
    & > .transcript--pill { color: $background; background: $primary; text-style: bold; }
    & > .transcript--bar { color: $foreground; background: $foreground 12%; }
    & > .transcript--keyword { color: $text-primary; background: $foreground 5%; }
    & > .transcript--string { color: $text-success; background: $foreground 5%; }
    & > .transcript--comment { color: $text-muted; background: $foreground 5%; text-style: italic; }
    & > .transcript--number { color: $text-warning; background: $foreground 5%; }
    & > .transcript--function { color: $text-accent; background: $foreground 5%; }
    & > .transcript--added { color: $text-success; }
    & > .transcript--removed { color: $text-error; }
    & > .transcript--strong { text-style: bold; }
    & > .transcript--emphasis { text-style: italic; }
    & > .transcript--strike { text-style: strike; }
    & > .transcript--link { color: $text-primary; text-style: underline; }
    & > .transcript--unsourced { color: $text-warning; text-style: underline; }
    & > .transcript--match { text-style: reverse; }

    &:ansi {
        & > .transcript--prompt { background: $background; text-style: bold; }
        & > .transcript--prompt-mark { background: $background; }
        & > .transcript--pill { color: $foreground; background: $background; text-style: bold reverse; }
        & > .transcript--bar { background: $background; text-style: reverse; }
    }
}
"""

BINDINGS: list[BindingType] = [
    Binding("down", "record(1)", "Next record", show=False),
    Binding("up", "record(-1)", "Previous record", show=False),
    Binding("shift+down", "scroll_down", "Scroll down one line", show=False),
    Binding("shift+up", "scroll_up", "Scroll up one line", show=False),
    Binding("enter,ctrl+o", "open", "Open in full", show=False),
    Binding("space", "expand", "Show more, or less", show=False),
    Binding("ctrl+y", "copy", "Copy source text", show=False),
    Binding("home", "scroll_home", "First line", show=False),
    Binding("end", "scroll_end", "Newest line", show=False),
    Binding("ctrl+f", "search", "Search", show=False),
]
