"""The flags of ``ba [PROMPT]``: one field of ``ChatFlags`` each, and a fast parser for correct command lines.

The field's row says all that ba knows of its flag. typer's options, the settings that flags set, the names of flags in
error messages, completion and the guide's table derive from it.

Importing typer and parsing with it takes a sixth of a second, so typer is used only to explain a wrong line.
tests/cli/test_flags.py checks that both parsers agree. Annotations are evaluated in this module, because the types of
the fields say how a value is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

Effort = Literal["low", "medium", "high", "xhigh", "max"]
Format = Literal["text", "json", "stream-json", "claude-stream-json"]
InputFormat = Literal["text", "stream-json"]
PromptTool = Literal["stdio"]
Mode = Literal["default", "accept-edits", "plan", "auto", "bypass"]
Fits = Literal["any", "app", "print", "program", "resume"]
"""Starts that a flag is for: any, the app, ``-p``, a program that sends lines of input, or a resumed session."""
_SETTING = regex(r"[a-z_][\w.]*=\S*")
_NUMBERS = {int: regex(r"[0-9]{1,12}"), float: regex(r"[0-9]{1,12}(\.[0-9]{1,12})?")}
_MODEL = "PROVIDER/MODEL"


@frozen
class Flag:
    """One flag. ``setting``: the dotted key that it sets. ``metavar``: what its value is, for help. ``least`` and
    ``most``: limits of a number. ``bare``: the value when none is given. The other fields are those of ``_rows``.

    ``hint``: the type of the field. ``type``: that of one value, bool for a flag without one. ``many``: whether the
    flag may be repeated.
    """

    help: str
    setting: str = ""
    short: str = ""
    fits: Fits = "any"
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    bare: str = ""
    field: str = ""
    hint: Any = bool
    type: Any = bool
    choices: tuple[str, ...] = ()
    many: bool = False

    @property
    def name(self) -> str:
        return f"--{self.field.rstrip('_').replace('_', '-')}"

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.short) if self.short else (self.name,)

    def read(self, text: str) -> Any:
        """Return the value that ``text`` stands for. Raises ValueError."""
        number = _NUMBERS.get(self.type)
        if (self.choices and text not in self.choices) or (number and not number.fullmatch(text)):
            raise ValueError(text)
        value = self.type(text)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ValueError(text)
        return value


@dataclass(slots=True, repr=False, eq=False)
class ChatFlags:
    """The prompt and the flags of a line. The name of a flag is that of its field."""

    prompt: list[str] | None = None
    print_: Annotated[bool, Flag("Print one answer and exit; stdin joins the prompt.", short="-p")] = False
    output_format: Annotated[Format | None, Flag("What -p prints.", "output_format", fits="print")] = None
    continue_: Annotated[bool, Flag("Continue this folder's newest session.", short="-c")] = False
    resume: Annotated[
        str | None, Flag("Resume a session (no ID: choose).", short="-r", metavar="[ID|TEXT]", bare="pick")
    ] = None
    fork: Annotated[bool, Flag("Continue in a copy; the session itself stays as it is.", fits="resume")] = False
    all_: Annotated[bool, Flag("With -c or -r: sessions of ba -p as well.", fits="resume")] = False
    model: Annotated[str | None, Flag("The model to ask.", "model", "-m", metavar=_MODEL)] = None
    small_model: Annotated[
        str | None, Flag("The model for small work, such as summaries.", "small.model", metavar=_MODEL)
    ] = None
    reasoning_model: Annotated[
        str | None, Flag("The model that answers in plan mode.", "reasoning.model", metavar=_MODEL)
    ] = None
    fallback_model: Annotated[
        str | None, Flag("The model while the main one is overloaded.", "fallback_model", metavar=_MODEL)
    ] = None
    effort: Annotated[Effort | None, Flag("How much effort the model spends.", "effort")] = None
    temperature: Annotated[
        float | None, Flag("Sampling temperature of the model.", "temperature", metavar="0-2", least=0, most=2.0)
    ] = None
    permission_mode: Annotated[Mode | None, Flag("What may run without asking.", "permission_mode")] = None
    yes_bypass_as_root: Annotated[bool, Flag("Allow bypass mode as root, outside a container.")] = False
    allow: Annotated[
        list[str] | None, Flag("Allow, e.g. 'edit_file(src/**)'. Repeatable.", "permissions.allow", metavar="RULE")
    ] = None
    ask: Annotated[list[str] | None, Flag("Always ask. Repeatable.", "permissions.ask", metavar="RULE")] = None
    deny: Annotated[list[str] | None, Flag("Never allow. Repeatable.", "permissions.deny", metavar="RULE")] = None
    add_dir: Annotated[list[Path] | None, Flag("Another folder to work in. Repeatable.", "add_dirs", metavar="DIR")] = (
        None
    )
    max_loops: Annotated[
        int | None, Flag("Model requests within one turn (100).", "max_loops", metavar="N", least=1, most=500)
    ] = None
    max_cost: Annotated[
        float | None, Flag("Stop once the session has cost this much.", "max_cost", metavar="USD", least=0.0001)
    ] = None
    max_tokens: Annotated[
        int | None,
        Flag("Stop once the session has used this many tokens, in and out.", "max_tokens", metavar="N", least=1),
    ] = None
    timeout: Annotated[
        float | None, Flag("With -p: stop after this long.", fits="print", metavar="SECONDS", least=0.1)
    ] = None
    strict_figures: Annotated[
        bool, Flag("With -p: exit code 5 when a figure of the answer is unsourced.", fits="print")
    ] = False
    system_prompt: Annotated[
        str | None, Flag("Use this system prompt instead of ba's.", "system_prompt", metavar="TEXT")
    ] = None
    system_prompt_file: Annotated[Path | None, Flag("The same, from a file.", "system_prompt_file", metavar="FILE")] = (
        None
    )
    append_system_prompt: Annotated[
        str | None, Flag("Add to the system prompt.", "append_system_prompt", metavar="TEXT")
    ] = None
    agent: Annotated[
        str | None, Flag("Talk to this agent: its prompt, tools and model.", "agents.main", metavar="NAME")
    ] = None
    agents: Annotated[str | None, Flag("More agents, as in Claude Code.", "agents.given", metavar="JSON")] = None
    mcp_config: Annotated[
        list[str] | None,
        Flag("More MCP servers, from a file like .mcp.json. Repeatable.", "mcp.config", metavar="FILE"),
    ] = None
    strict_mcp_config: Annotated[bool, Flag("Use only the MCP servers of --mcp-config.", "mcp.strict")] = False
    private: Annotated[bool, Flag("Remember nothing of this session, and recall nothing.", "memory.private")] = False
    trust: Annotated[
        bool, Flag("Trust this folder's current tools, hooks and settings; without it, -p ignores them.")
    ] = False
    cwd: Annotated[Path | None, Flag("Work in this folder.", metavar="DIR")] = None
    theme: Annotated[str | None, Flag("Colours: dark, light, …", "theme", fits="app", metavar="NAME")] = None
    no_color: Annotated[bool, Flag("No colours.", fits="app")] = False
    input_format: Annotated[
        InputFormat | None, Flag("For programs: stream-json reads prompts in Claude Code's lines.", fits="print")
    ] = None
    include_partial_messages: Annotated[bool, Flag("For programs: also pieces of answers.", fits="print")] = False
    replay_user_messages: Annotated[bool, Flag("For programs: repeat their prompts.", fits="program")] = False
    permission_prompt_tool: Annotated[
        PromptTool | None, Flag("For programs: ask them for approvals (ba guide programs).", fits="program")
    ] = None
    version: Annotated[bool, Flag("Print the version and exit.", short="-V")] = False

    def settings(self) -> dict[str, object]:
        """Return the settings that the flags set, by dotted key."""
        given = {row.setting: getattr(self, row.field) for row in ROWS if row.setting}
        return {key: _plain(value) for key, value in given.items() if value is not None and value is not False}

    def first_for(self, fits: Fits) -> str:
        """Return the name of the first given flag that is for these starts only; empty when there is none."""
        return next((row.name for row in ROWS if row.fits == fits and getattr(self, row.field)), "")


def _plain(value: object) -> object:
    if isinstance(value, list):
        return [_plain(each) for each in cast("list[object]", value)]
    return str(value) if isinstance(value, Path) else value


def _rows() -> Iterator[Flag]:
    """Yield a row for each field of ``ChatFlags``."""
    for each in fields(ChatFlags)[1:]:
        hint, row = get_args(each.type)
        kind = hint if hint is bool else get_args(hint)[0]
        choices, many = get_args(kind) if get_origin(kind) is Literal else (), get_origin(kind) is list
        one = str if choices else get_args(kind)[0] if many else kind
        yield replace(row, field=each.name, hint=hint, type=one, choices=choices, many=many)


ROWS = tuple(_rows())
FLAGS: Mapping[str, Flag] = {name: row for row in ROWS for name in row.names}
"""The flags by each of their names."""


def flag_of(setting: str) -> str:
    """Return the name of the flag that sets a setting; empty when none does."""
    return next((row.name for row in ROWS if row.setting == setting), "")


def sets_value(word: str) -> bool:
    """Return whether ``word`` has the form ``key=value``, as after ``-c`` in Codex."""
    return _SETTING.fullmatch(word) is not None


def read_flags(argv: Sequence[str]) -> ChatFlags | None:
    """Parse the flags of a line; return None when it is wrong or uses a syntax that only typer supports."""
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
                return None
            else:
                _read_flag(flags, word, rest)
    except ValueError:
        return None
    flags.prompt = words or None
    return flags


def _read_flag(flags: ChatFlags, word: str, rest: list[str]) -> None:
    """Read the flag ``word``, whose value may be the first word of ``rest``. Raises ValueError."""
    name, sign, text = word.partition("=") if word.startswith("--") else (word, "", "")
    row = FLAGS.get(name)
    if row is None or (sign and row.type is bool):
        raise ValueError(word)
    if row.type is bool:
        setattr(flags, row.field, True)
        return
    if not sign:
        if not rest or rest[-1].startswith("-"):
            raise ValueError(word)
        text = rest.pop()
    value = row.read(text)
    setattr(flags, row.field, [*(getattr(flags, row.field) or ()), value] if row.many else value)
