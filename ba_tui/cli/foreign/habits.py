"""Options that people and programs type from habit: those of Claude Code 2.1, Codex 0.169 and other assistants.

One that means the same as an option of ba becomes that option; every other is answered in one line. Imported only for
a line that holds a word ba has no option for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ba_tui.cli.flags import LISTS, SWITCHES, VALUES, sets_value
from ba_tui.cli.foreign.rules import listed_rules, looks_like_rule
from ba_tui.cli.launch import folder_of
from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen

Becomes: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""The options of ba for the values of an option of another assistant. Raises UsageError."""
SAME_MODES: Mapping[str, str] = {"acceptEdits": "accept-edits", "bypassPermissions": "bypass"}
"""Permission modes of Claude Code by their names here; ``default``, ``plan`` and ``auto`` are called the same."""
QUIET = "dontAsk"
SAFER = "Use --permission-mode auto (asks outside the sandbox only) or bypass (never asks)"


@frozen
class Habit:
    """``ours``: the option of ba that it stands for, ``words`` what to do instead; empty ``words``: it is honoured.

    ``becomes``: what stands in its place, None for rules. ``values``: how many words behind it belong to it; None for a
    list of tools, of which rules are made.
    """

    ours: str = ""
    words: str = ""
    becomes: Becomes | None = None
    values: int | None = 0


def _honoured(ours: str, *, value: bool = False) -> Habit:
    return Habit(ours, "", lambda given: [ours, *given], 1 if value else 0)


def _nothing(given: Sequence[str]) -> Sequence[str]:
    return ()


def _rules(option: str, given: Sequence[str], argv: Sequence[str]) -> Iterator[str]:
    """``option`` for each rule of the lists in ``given``; a leading slash means the working directory."""
    folder = next((value for name in ("--cwd", "--cd", "-C") if (value := _value(argv, name))), "")
    for rule in listed_rules(given, option, folder_of(Path(folder) if folder else None)):
        yield from (option, rule)


def _sources(given: Sequence[str]) -> Sequence[str]:
    if {each.strip() for each in given[0].split(",")} == {"user", "project", "local"}:
        return ()
    raise _unknown("--setting-sources", "ba reads all of user, project and local; for one run use flags instead")


def _unknown(name: str, words: str) -> UsageError:
    return UsageError(f"Unknown option {name}.", f"{words}.")


_BYPASS = Habit("--permission-mode", "", lambda given: ["--permission-mode", "bypass"])
HONOURED: Mapping[str, Habit] = {
    "--allowedTools": Habit("--allow", values=None),
    "--allowed-tools": Habit("--allow", values=None),
    "--disallowedTools": Habit("--deny", values=None),
    "--disallowed-tools": Habit("--deny", values=None),
    "--max-turns": _honoured("--max-loops", value=True),
    "--max-budget-usd": _honoured("--max-cost", value=True),
    "--fork-session": _honoured("--fork"),
    "--dangerously-skip-permissions": _BYPASS,
    "--setting-sources": Habit("", "", _sources, 1),
    "--no-chrome": Habit("", "", _nothing),
    "--skip-git-repo-check": Habit("", "", _nothing),
    "--no-daemon": Habit("", "", _nothing),
    "-C": _honoured("--cwd", value=True),
    "--cd": _honoured("--cwd", value=True),
}
"""Options that mean the same here, by name."""

ANSWERED: Mapping[str, Habit] = {
    name: Habit(option, words)
    for names, option, words in (
        (
            "--yolo --full-auto --auto-approve --yes --yes-always -y --auto --autopilot --always-approve "
            "--dangerously-skip-permissions "
            "--skip-permissions --no-confirm --bypass --trust-all-tools --allow-dangerously-skip-permissions",
            "--permission-mode",
            SAFER,
        ),
        (
            "--dangerously-bypass-approvals-and-sandbox",
            "--permission-mode",
            "Use --permission-mode bypass, which keeps the sandbox; BA_SANDBOX=off runs commands outside it",
        ),
        (
            "--dangerously-bypass-hook-trust",
            "--trust",
            "Use --trust, which trusts this folder's current hooks, tools and settings for good",
        ),
        ("--approval-mode --approval-policy --mode --permission", "--permission-mode", "See --permission-mode"),
        (
            "--ask-for-approval -a --approve-for-me",
            "--permission-mode",
            "Use --permission-mode: default asks before changes, auto only outside the sandbox, bypass never",
        ),
        (
            "--sandbox --no-sandbox -s",
            "--permission-mode",
            "Commands run in a sandbox where there is one; BA_SANDBOX is auto, required or off, "
            "and --permission-mode plan only reads. A session: --resume ID",
        ),
        ("-v", "--version", "ba -v alone prints the version; ba doctor names the log file"),
        ("--plan", "--permission-mode", "Use --permission-mode plan"),
        ("--auto-edit --accept-edits", "--permission-mode", "Use --permission-mode accept-edits"),
        ("--max-steps --max-iterations --max-session-turns --max-turns", "--max-loops", "Use --max-loops N"),
        ("--max-budget --max-budget-usd --max-price --budget", "--max-cost", "Use --max-cost USD"),
        ("--task-budget", "--max-tokens", "Use --max-tokens N"),
        ("--allow-tool --allowedtools --allowed-tools", "--allow", "Use --allow RULE"),
        ("--deny-tool --disallowedtools --disallowed-tools", "--deny", "Use --deny RULE"),
        ("--tools", "--deny", "ba shows the model its own tools: take one away with --deny TOOL"),
        ("--json", "--output-format", "Use -p --output-format json (one object) or stream-json (a line an event)"),
        ("--format", "--output-format", "Use -p --output-format json or stream-json"),
        ("--stream-json --streaming", "--output-format", "Use -p --output-format stream-json"),
        (
            "--output-schema --json-schema",
            "--print",
            "An answer in the form of a JSON Schema is not supported yet: describe the form in the prompt",
        ),
        ("--output-last-message -o", "--print", 'stdout holds the answer alone: ba -p "…" > FILE'),
        ("--headless --non-interactive --prompt --quiet -q --message --exec", "--print", 'Use -p "…"'),
        ("--background --bg", "--print", 'Use -p "…" and your shell\'s &'),
        ("--session --thread --resume-id --from-pr", "--resume", "Use --resume ID or --resume WORDS"),
        (
            "--session-id",
            "--resume",
            "ba names each session itself: --output-format json tells its ID, and --resume ID opens it",
        ),
        ("--resume-session-at --resume-drops-turn", "--fork", "Resume the session, and use /rewind in ba"),
        ("--last", "--continue", "Use --continue"),
        ("--fork-session --branch", "--fork", "Use --fork"),
        ("--cd --dir --directory --workdir --work-dir --working-directory -C", "--cwd", "Use --cwd DIR"),
        ("--include-directories --add-directory --include", "--add-dir", "Use --add-dir DIR"),
        ("--system", "--system-prompt", "Use --system-prompt TEXT"),
        ("--append-system-prompt-file", "--append-system-prompt", 'Use --append-system-prompt "$(cat FILE)"'),
        (
            "--exclude-dynamic-system-prompt-sections",
            "--system-prompt",
            "ba keeps what changes out of the system prompt already",
        ),
        ("--no-colour --colour --color", "--no-color", "ba uses colours in terminals only; --no-color leaves them out"),
        ("--light --dark", "--theme", "Use --theme NAME"),
        ("--image --images --file --attach -i -f", "--print", "Name the file in the prompt, with @ before it"),
        ("--mcp", "--mcp-config", "Use --mcp-config FILE"),
        (
            "--plugin-dir --plugin-url",
            "--print",
            "Put the plugin into ~/.claude/plugins: its commands and skills count",
        ),
        ("--worktree -w --tmux", "--cwd", "ba makes no worktrees: git worktree add DIR, then ba --cwd DIR"),
        ("--debug --debug-file -d", "--print", "ba doctor names the log file; BA_LOG_LEVEL=debug logs more"),
        ("--settings --config --strict-config --enable --disable", "--print", "See ba config --help"),
        ("--profile", "--model", "ba has no profiles: choose with --model, --effort and --permission-mode"),
        (
            "--bare --safe-mode --ignore-user-config --ignore-rules --disable-slash-commands",
            "--print",
            "Set BA_HOME to an empty folder to start without your settings, rules and skills",
        ),
        (
            "--ephemeral --no-session-persistence --session-mirror",
            "--print",
            "ba saves every session: ba sessions delete ID deletes one",
        ),
        ("--name -n", "--print", "Name a session with /rename in ba, or ba sessions rename ID NAME"),
        ("--api-key --apikey", "--print", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or type /setup in ba"),
        (
            "--thinking --reasoning --reasoning-effort --max-thinking-tokens --thinking-display",
            "--effort",
            "Use --effort low, medium, high, xhigh or max",
        ),
        ("--effort", "--model", "Choose another model with --model"),
        ("--oss --local-provider", "--model", "Use -m ollama/MODEL or -m lmstudio/MODEL: ba guide local"),
        ("--search", "--allow", "Web search is a tool: see ba guide web, and --allow web_search"),
        ("--betas --cyber-access-program", "--model", "ba sends no such header: choose the model with --model"),
        ("--include-hook-events", "--output-format", "Hooks write no lines: ba hooks list shows them"),
        ("--prompt-suggestions --brief --thread-source", "--print", "ba has nothing of the kind"),
        ("--ide --chrome", "--print", "ba connects to no editor or browser: mention files with @"),
        ("--remote-control --remote-control-session-name-prefix", "--print", "ba is not controlled from elsewhere"),
        ("--remote --remote-auth-token-env --share", "--print", "ba runs on this machine only"),
        ("--ax-screen-reader", "--print", 'For plain text without a screen: ba -p "…", and ba -p -c "…" to go on'),
        ("--no-alt-screen", "--print", 'The app needs the whole screen: ba -p "…" prints an answer instead'),
    )
    for name in names.split()
}
"""Options that are answered, by name: the option of ba that helps, and what to do."""


def translated(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` with options of ba in place of others that mean the same.

    Raises:
        UsageError: one of them has no counterpart; the hint says what to do instead.
    """
    words, done = list(reversed(argv)), list[str]()
    printing = bool({"-p", "--print"} & set(argv)) or _streams(argv)
    asks = not printing or bool(_value(argv, "--permission-prompt-tool"))
    while words:
        word = words.pop()
        name, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if word == "--":
            return [*done, word, *reversed(words)]
        if name == "--permission-mode" and (sign or words):
            done += [name, _mode(value if sign else words.pop(), asks=asks)]
        elif name == "--verbose":
            _check_verbose(argv)
        elif name in SWITCHES or name in VALUES or name in LISTS:
            _check_setting(word, words)
            done.append(word)
            if name not in SWITCHES and not sign and words:
                done.append(words.pop())
        elif habit := HONOURED.get(name):
            given = [value] if sign else list(_values(habit, words))
            if habit.values != 0 and not given:
                raise UsageError(f"Option {name} needs a value.", f"It is ba's {habit.ours or 'own'}: see ba --help.")
            done += habit.becomes(given) if habit.becomes else _rules(habit.ours, given, argv)
        elif habit := ANSWERED.get(name.casefold() if name.startswith("--") else name):
            raise _unknown(name, habit.words)
        else:
            done.append(word)
    return done


def _value(argv: Sequence[str], name: str) -> str:
    """The value of the option ``name``; empty where the line does not have it."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--":
            break
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return ""


def _streams(argv: Sequence[str]) -> bool:
    """Whether the lines that go out are those of Claude Code."""
    return _value(argv, "--output-format") == "claude-stream-json" or _value(argv, "--input-format") == "stream-json"


def _mode(mode: str, *, asks: bool) -> str:
    """Our name of a mode. Raises UsageError."""
    if mode == QUIET:
        if asks:
            raise UsageError(
                f"Mode {QUIET} is for runs that ask nobody.", "Use it with -p, and without --permission-prompt-tool."
            )
        return "default"
    return SAME_MODES.get(mode, mode)


def _check_verbose(argv: Sequence[str]) -> None:
    """Claude Code wants it beside its stream-json, whose lines ba calls by another name. Raises UsageError."""
    if _streams(argv):
        return
    if _value(argv, "--output-format") == "stream-json":
        words = "For Claude Code's lines use --output-format claude-stream-json; for ba's own leave out --verbose"
        raise _unknown("--verbose", words)
    raise _unknown("--verbose", "ba -p tells each step on stderr; in the app Ctrl+O opens a result in full")


def _check_setting(word: str, words: Sequence[str]) -> None:
    """``-c key=value`` sets an option in Codex. Raises UsageError."""
    if word == "-c" and words and sets_value(words[-1]):
        hint = f"Use a flag (ba --help), or ba config set. To send it: ba -c -- {words[-1]}."
        raise UsageError(f"-c continues a session, and does not set {words[-1]}.", hint)


def _values(habit: Habit, words: list[str]) -> Iterator[str]:
    """Take the words that belong to an option off the end of ``words``."""
    if habit.values is None and words:
        yield words.pop()
        while words and looks_like_rule(words[-1]):
            yield words.pop()
    for _ in range(habit.values or 0):
        if words and not words[-1].startswith("-"):
            yield words.pop()


def option(name: str, known: Sequence[str]) -> str:
    """Return what to do instead of the option ``name``; empty when it is no habit, or stands for none of ``known``."""
    habit = ANSWERED.get(name.casefold() if name.startswith("--") else name, Habit())
    return f"{habit.words}." if habit.ours in known else ""
