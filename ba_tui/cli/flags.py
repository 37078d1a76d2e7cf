"""The flags of ``ba [PROMPT]``, as a value, and a reader for lines in which nothing is wrong.

Importing typer and letting it read a line takes a sixth of a second, so it is left to say what is wrong with one.
tests/cli/test_flags.py holds this reader to what typer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ba_tui.core.text.patterns import regex

Effort = Literal["low", "medium", "high", "xhigh", "max"]
Format = Literal["text", "json", "stream-json", "claude-stream-json"]
InputFormat = Literal["text", "stream-json"]
PromptTool = Literal["stdio"]
Mode = Literal["default", "accept-edits", "plan", "auto", "bypass"]
LOOPS = (1, 500)
COST, TOKENS, TIMEOUT = 0.0001, 1, 0.1
"""The least of each."""
WARMEST = 2.0
"""The highest temperature."""
_SETTING = regex(r"[a-z_][\w.]*=\S*")
_WHOLE, _NUMBER = regex(r"[0-9]{1,12}"), regex(r"[0-9]{1,12}(\.[0-9]{1,12})?")


@dataclass(slots=True)
class ChatFlags:
    """What typer calls its parameters; None and False: not given."""

    prompt: list[str] | None = None
    print_: bool = False
    output_format: Format | None = None
    input_format: InputFormat | None = None
    include_partial_messages: bool = False
    replay_user_messages: bool = False
    permission_prompt_tool: PromptTool | None = None
    continue_: bool = False
    resume: str | None = None
    fork: bool = False
    all_: bool = False
    model: str | None = None
    small_model: str | None = None
    reasoning_model: str | None = None
    fallback_model: str | None = None
    effort: Effort | None = None
    temperature: float | None = None
    permission_mode: Mode | None = None
    yes_bypass_as_root: bool = False
    allow: list[str] | None = None
    ask: list[str] | None = None
    deny: list[str] | None = None
    add_dir: list[Path] | None = None
    max_loops: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    strict_figures: bool = False
    system_prompt: str | None = None
    system_prompt_file: Path | None = None
    append_system_prompt: str | None = None
    agent: str | None = None
    agents: str | None = None
    mcp_config: list[str] | None = None
    strict_mcp_config: bool = False
    private: bool = False
    trust: bool = False
    cwd: Path | None = None
    theme: str | None = None
    no_color: bool = False


class _Unread(Exception):
    """Typer is to read this line, and to say what is wrong with it."""


def _one_of(known: object) -> Callable[[str], str]:
    names = get_args(known)

    def read(text: str) -> str:
        if text not in names:
            raise _Unread
        return text

    return read


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or int(text) < least or (most and int(text) > most):
            raise _Unread
        return int(text)

    return read


def _number(least: float, most: float | None = None) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not _NUMBER.fullmatch(text) or float(text) < least or (most and float(text) > most):
            raise _Unread
        return float(text)

    return read


SWITCHES = {
    "-p": "print_",
    "--print": "print_",
    "-c": "continue_",
    "--continue": "continue_",
    "--include-partial-messages": "include_partial_messages",
    "--replay-user-messages": "replay_user_messages",
    "--fork": "fork",
    "--all": "all_",
    "--yes-bypass-as-root": "yes_bypass_as_root",
    "--strict-mcp-config": "strict_mcp_config",
    "--private": "private",
    "--trust": "trust",
    "--strict-figures": "strict_figures",
    "--no-color": "no_color",
}
VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--output-format": ("output_format", _one_of(Format)),
    "--input-format": ("input_format", _one_of(InputFormat)),
    "--permission-prompt-tool": ("permission_prompt_tool", _one_of(PromptTool)),
    "-r": ("resume", str),
    "--resume": ("resume", str),
    "-m": ("model", str),
    "--model": ("model", str),
    "--small-model": ("small_model", str),
    "--reasoning-model": ("reasoning_model", str),
    "--fallback-model": ("fallback_model", str),
    "--effort": ("effort", _one_of(Effort)),
    "--temperature": ("temperature", _number(0, WARMEST)),
    "--permission-mode": ("permission_mode", _one_of(Mode)),
    "--max-loops": ("max_loops", _whole(*LOOPS)),
    "--max-cost": ("max_cost", _number(COST)),
    "--max-tokens": ("max_tokens", _whole(TOKENS)),
    "--timeout": ("timeout", _number(TIMEOUT)),
    "--system-prompt": ("system_prompt", str),
    "--system-prompt-file": ("system_prompt_file", Path),
    "--append-system-prompt": ("append_system_prompt", str),
    "--agent": ("agent", str),
    "--agents": ("agents", str),
    "--cwd": ("cwd", Path),
    "--theme": ("theme", str),
}
LISTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "--allow": ("allow", str),
    "--ask": ("ask", str),
    "--deny": ("deny", str),
    "--add-dir": ("add_dir", Path),
    "--mcp-config": ("mcp_config", str),
}


def sets_value(word: str) -> bool:
    """Whether ``word`` reads ``key=value``, which follows ``-c`` in Codex."""
    return _SETTING.fullmatch(word) is not None


def read_flags(argv: Sequence[str]) -> ChatFlags | None:
    """The flags of a line; None when something in it is wrong, or written in a way that only typer knows."""
    flags, words, rest = ChatFlags(), list[str](), list(reversed(argv))
    try:
        while rest:
            word = rest.pop()
            if word == "--":
                words += reversed(rest)
                break
            if not word.startswith("-") or word == "-":
                words.append(word)
            elif word == "-c" and rest and sets_value(rest[-1]):
                raise _Unread
            elif word in SWITCHES:
                setattr(flags, SWITCHES[word], True)
            else:
                _value(flags, word, rest)
    except _Unread:
        return None
    flags.prompt = words or None
    return flags


def _value(flags: ChatFlags, word: str, rest: list[str]) -> None:
    """Take in the option ``word``, whose value may be the next word. Raises _Unread."""
    name, sign, text = word.partition("=") if word.startswith("--") else (word, "", "")
    if name not in VALUES and name not in LISTS:
        raise _Unread
    if not sign:
        if not rest or rest[-1].startswith("-"):
            raise _Unread
        text = rest.pop()
    key, read = VALUES.get(name) or LISTS[name]
    value = read(text)
    setattr(flags, key, value if name in VALUES else [*(getattr(flags, key) or ()), value])
