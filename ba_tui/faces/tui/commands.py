"""Rows of the command table, and finding one by what is typed: slash commands, keys, palette and help all read them.

Rows are values: ``rooms`` says what each of ba's own does, ``own_commands`` which ones the open session brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from ba_tui.core.text import wording
from ba_tui.core.values import frozen
from ba_tui.faces.tui.widgets.completion import Candidate

SAME: Mapping[str, str] = {
    guess: command
    for command, guesses in {
        "add-dir": "add add-folder workspace",
        "agents": "subagents subagent fleet",
        "background": "bg",
        "clear": "restart wipe newchat new-session",
        "compact": "summarise summary condense offload compaction autocompact recap",
        "config": "configure preferences options setting debug-config settings-config",
        "context": "tokens token window",
        "copy": "yank clipboard",
        "cost": "costs price spend statistics quota budget limits usage-credits extra-usage rate-limit-options",
        "diff": "changes review-changes",
        "doctor": "health heapdump log logs",
        "editor": "edit external-editor",
        "exit": "bye close leave",
        "export": "save dump download",
        "guide": "guides doc docs documentation manual howto how-to faq readme powerup team-onboarding",
        "help": "h ? commands keys keybindings hotkeys shortcuts bindings keymap welcome",
        "history": "prompts",
        "hooks": "hook",
        "inspector": "detail output expand",
        "forget": "unremember clear-memory",
        "memory": "memories agents-md claude-md instructions memory-files long-term-memory",
        "mode": "modes approve approval approval-mode permission-mode accept-edits",
        "model": "llm provider providers",
        "notices": "messages warnings",
        "permissions": "permission rules allow deny policy allowlist privacy-settings approve-retry",
        "redraw": "refresh repaint",
        "remember": "note memo save-memory memorize memorise",
        "rename": "title name",
        "resume": "load threads thread session chats chat switch-session list history-sessions",
        "review": "pr-review ultrareview",
        "rewind": "restore checkpoints revert rollback back unsend",
        "security-review": "security",
        "setup": "auth signin sign-in key keys-setup apikey api-key onboarding provider-setup",
        "shells": "jobs processes terminals bash-list daemon",
        "skills": "skill",
        "sql": "query select",
        "data": "datasets sources grid table tables csv",
        "python": "kernel",
        "verify": "check-figures provenance",
        "why": "explain evidence",
        "status": "info whoami about version pwd",
        "theme": "color colors colour colours appearance",
        "todos": "todo tasklist",
        "tools": "tool functions",
        "transcript": "pager raw scrollback rollout",
        "trust": "trusted folders",
        "mcp": "mcps servers apps connectors",
    }.items()
    for guess in guesses.split()
}
"""The command that does the same."""

_SETUP_CLOUD = "/guide clouds says how."
_LATER = "That is not supported yet."
_NOT_OURS = "ba has nothing of the kind."
OTHERWISE: Mapping[str, str] = {
    guess: words
    for guesses, words in (
        ("plugin plugins extensions extension marketplace", "Commands and skills of plugins count. See /skills."),
        ("reload-plugins reload-skills reload", "Files are read again by themselves. See /skills."),
        ("pause-memory memory-pause private incognito", "Start ba with --private, or see /config memory."),
        ("yolo auto bypass auto-approve autoapprove full-auto", "/mode auto asks outside the sandbox only."),
        ("stop cancel interrupt abort", "Press Esc to interrupt."),
        ("autofix-pr pr-comments pr issue", "Ask for it, and let ba use `gh` for it."),
        ("code-review", "/review reviews your changes."),
        ("commit", "Ask for it: “Commit my changes.”"),
        ("logout signout sign-out", "Delete the key from keys.yaml."),
        ("install", "ba is installed. /doctor checks it."),
        ("sandbox setup-default-sandbox elevate-sandbox", "/doctor tries it, /config sandbox sets it."),
        ("release-notes changelog whats-new", "See CHANGELOG.md where ba comes from."),
        ("update upgrade", "Update ba with uv, pipx or pip."),
        ("feedback bug", "Tell the maintainers in the project's issues."),
        ("search find grep", "Tab, then Ctrl+F searches this session."),
        ("delete remove archive", "/resume lists sessions; Ctrl+D deletes one."),
        ("import", "Run `ba sessions import FILE` in a shell."),
        ("demo tour tutorial", "Run `ba demo` in a shell."),
        ("cd cwd move", "Start ba with --cwd DIR; /add-dir adds a folder."),
        ("mention file files read attach", "Type @ and the name of the file."),
        ("image paste paste-image picture screenshot", "Ctrl+V pastes a picture."),
        ("run sh exec bash terminal !", "Type ! and the command: !ls. /shell does the same."),
        ("retry again regenerate", "Press Up for the prompt, or use /rewind."),
        ("btw queue steer side", "While a turn runs, Enter queues your words."),
        ("web fetch browse", "Ask for it, with the address."),
        ("vim vi emacs", "Vim keys are not supported yet. Ctrl+G opens $EDITOR."),
        ("ide terminal-setup chrome browser", "ba needs no setup for that."),
        ("install-github-app install-slack-app github slack", "ba has no such app. In CI use `ba -p`."),
        ("goal loop loops schedule routines proactive", _LATER),
        ("ultraplan advisor insights voice realtime remote", _LATER),
        ("worktree", "Start ba in a worktree that you made."),
        ("workflow workflows", "Run `ba run FILE` in a shell."),
        ("chart plot graph", "Ask for it, or press p in a grid: F4."),
        ("notebook jupyter", "/report x.ipynb writes one; @x.ipynb reads one."),
        ("effort", "Set it in /config: effort. See /model too."),
        ("thinking think fast reasoning daybreak", "The model decides. See /model, and effort in /config."),
        ("output-style style personality brief", "Say it in AGENTS.md: /memory files opens it."),
        ("statusline status-line footer", "/status shows how things stand."),
        ("share unshare", "ba uploads nothing. /export html makes a file."),
        (
            "remote-control remote-env teleport web-setup mobile ios android desktop app",
            "ba runs in the terminal.",
        ),
        ("session-id", "/status shows the session's id."),
        ("setup-bedrock setup-vertex setup-azure setup-foundry", _SETUP_CLOUD),
        ("stickers passes radio wellbeing pets pet breaks", _NOT_OURS),
        ("tui focus scroll-speed screen", "The screen is fixed. F3 shows the side panel."),
        ("verbose debug trace", "Ctrl+O opens a result in full."),
        ("experimental experiments features", "ba has no experimental features to switch."),
        ("sub-command subcommand cli", "Run `ba --help` in a shell."),
        ("login-status account", "/status shows the model; /setup connects another."),
        ("migrate", "/memory files, /hooks and /skills show what is read."),
        ("init-verifiers test", "Ask for it in your own words."),
        ("unqueue dequeue clear-queue", "Press Up on the empty input to edit what waits."),
        ("timeline fork-list", "/rewind lists the prompts; /fork copies the session."),
        ("design-login pro-trial-expired", _NOT_OURS),
    )
    for guess in guesses.split()
}
"""What to do instead, for what no command does."""


def answer(name: str, known: Iterable[str]) -> str:
    """Return the line for a command that does not exist: what means the same, else what it is a slip of."""
    name = name.casefold()
    there_is = f"There is no /{name}."
    if same := SAME.get(name):
        return f"{there_is} Did you mean /{same}?"
    if words := OTHERWISE.get(name):
        return f"{there_is} {words}"
    if meant := wording.slip(name, known):
        return f"{there_is} Did you mean /{meant}?"
    if meant := wording.slip(name, (*SAME, *OTHERWISE)):
        return f"{there_is} {OTHERWISE.get(meant) or f'Did you mean /{SAME[meant]}?'}"
    return f"{there_is} Type / to see all commands."


def means_another(name: str, command: str) -> bool:
    """Whether people who type ``name`` in full mean something else than ``command``, which may begin with it."""
    name = name.casefold()
    return name in OTHERWISE or SAME.get(name, command) != command


PREFIX = 1
"""The rank of a name that begins with what was typed; the whole name has a lower one."""
PROMPT = "prompt"
"""The origin of a command that ba brings as a prompt: what it stands for is sent."""
PLAIN_EXITS = frozenset({"exit", "quit", ":q"})


@frozen
class SlashCommand:
    """``argument`` is the hint shown behind the name, in ``<>`` when it is needed; ``slash`` False: a key only.
    ``origin``: the file of the person's own command, ``skill``, or ``PROMPT``; empty for what ba does itself.
    ``choices``: words that may be typed behind the name, each with a line about it."""

    name: str
    summary: str
    argument: str = ""
    aliases: tuple[str, ...] = ()
    keys: str = ""
    slash: bool = True
    origin: str = ""
    choices: Callable[[], Sequence[tuple[str, str]]] | None = None
    paths: bool = False
    """Whether what may be typed behind the name is a path."""

    @property
    def title(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def asks(self) -> bool:
        """Whether words should be typed behind it before it is sent."""
        own = self.origin not in {"", PROMPT}
        return bool(self.argument) and (own or self.argument.startswith("<"))


def find(name: str, rows: Iterable[SlashCommand]) -> SlashCommand | None:
    """The first command of this name or alias."""
    name = name.casefold()
    return next((each for each in rows if name == each.name.casefold() or name in each.aliases), None)


def parse(text: str, cwd: Path, rows: Iterable[SlashCommand]) -> tuple[str, str] | None:
    """Name and argument when ``text`` is meant as a command; None for prose and for paths that begin with ``/``."""
    stripped = text.strip()
    if text.startswith("!"):
        return "shell", text[1:].strip()
    if text.startswith("# ") and "\n" not in stripped:
        return "remember", text
    if stripped in PLAIN_EXITS:
        return "exit", ""
    if not stripped.startswith("/") or stripped.startswith("//"):
        return None
    name, argument = (*stripped[1:].split(None, 1), "", "")[:2]
    command = find(name, rows)
    # With a space before it, what is no command is sent as it is.
    unknown = command is None and (not text.startswith("/") or _is_path(cwd, name))
    if "/" in name or not name or unknown:
        return None
    if "\n" in stripped[: len(name) + 2] and not (command and command.origin):
        # What ba's own commands take is one line; this is a prompt that begins with a slash.
        return None
    return name, argument


def _is_path(cwd: Path, name: str) -> bool:
    try:
        return (cwd / f"/{name}").exists() or "." in name
    except (OSError, ValueError):
        return False


def nearest(name: str, rows: Iterable[SlashCommand]) -> str:
    """The line for a command that does not exist."""
    return answer(name, [word for command in rows if command.slash for word in (command.name, *command.aliases)])


def complete(query: str, rows: Iterable[SlashCommand]) -> Sequence[Candidate]:
    """Commands for the popup: the one of this name, those that start with ``query``, by name before alias, then those
    that hold it or its letters in order."""
    query = query.casefold()
    if " " in query:
        return _choices(query, rows)
    ranked: list[tuple[tuple[int, int], int, Candidate]] = []
    for index, command in enumerate(command for command in rows if command.slash):
        words = ((command.name.casefold(), 0), *((alias, 1) for alias in command.aliases))
        ranks = [(rank, alias) for word, alias in words if (rank := _rank(query, word)) is not None]
        if ranks:
            insert = f"/{command.name}" + (" " if command.asks else "")
            best = min(ranks)
            sure = best[0] == 0 or (best[0] == PREFIX and not means_another(query, command.name))
            candidate = Candidate(insert, command.title, command.summary, sure=sure)
            ranked.append((best, index, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]


def _choices(query: str, rows: Iterable[SlashCommand]) -> Sequence[Candidate]:
    """The words that may follow a command, those that begin with what was typed first."""
    name, _, typed = query.partition(" ")
    command, typed = find(name, rows), typed.lstrip()
    if command is None or command.choices is None:
        return ()
    ranked = [(rank, word, line) for word, line in command.choices() if (rank := _rank(typed, word)) is not None]
    ranked.sort(key=lambda each: each[0])
    return [Candidate(word, word, line, sure=bool(typed) and rank <= PREFIX) for rank, word, line in ranked]


def _rank(query: str, word: str) -> int | None:
    if word == query:
        return 0
    if word.startswith(query):
        return PREFIX
    if query in word:
        return 2
    letters = iter(word)
    return 3 if len(query) > 1 and all(letter in letters for letter in query) else None
