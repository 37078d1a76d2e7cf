"""Commands and options that people know from other assistants, and what ba has for them.

Imported for a wrong command line alone; prompts that begin with such a word stay prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.text.wording import slip
from ba_tui.core.values import frozen

LIST = frozenset({"list", "ls", "show", "get", "add", "create", "new", "remove", "rm", "delete", "edit", "help"})


@frozen
class GuessedCommand:
    """``words``: what to do instead. ``follows``: words that make a command of it; alone it always is one.
    ``quoted``: so does a whole sentence in quotation marks."""

    words: str
    follows: frozenset[str] = frozenset()
    quoted: bool = False


def _all(names: str, words: str, follows: str = "", *, quoted: bool = False) -> dict[str, GuessedCommand]:
    guess = GuessedCommand(words, LIST | frozenset(follows.split()) if follows else frozenset(), quoted)
    return dict.fromkeys(names.split(), guess)


COMMANDS: Mapping[str, GuessedCommand] = {
    **_all(
        "mcp",
        "MCP servers are not supported yet. ba tools list shows the tools.",
        "add-json serve enable disable login",
    ),
    **_all("agent subagents subagent", "ba agents list shows the agents; they can't be started yet.", "run"),
    **_all("memory memories", "Memory is not supported yet. ba reads AGENTS.md in your folder.", "clear search"),
    **_all("plugin plugins extension extensions", "Plugins are not supported. See ba skills --help.", "install update"),
    **_all("login auth setup-token onboarding", "Start ba and type /setup to enter a key.", "login logout status"),
    **_all("setup init", "Start ba and type /setup to enter a key."),
    **_all("logout", "Delete the key from keys.yaml, in the folder of the file that ba config path prints."),
    **_all("update upgrade", "Update ba as you installed it: uv, pipx or pip.", "--check now check"),
    **_all("install uninstall", "Install or remove ba with uv, pipx or pip."),
    **_all("help commands", "See ba --help."),
    **_all("docs doc manual man documentation", "ba guide lists the pages of the guide."),
    **_all("version about", "See ba --version."),
    **_all("resume", "ba -r chooses a session, ba -r ID opens one.", "last --last"),
    **_all("continue", "ba -c continues this folder's newest session."),
    **_all("history threads chats list ls", "ba sessions list shows the saved sessions.", "all"),
    **_all("exec", 'ba -p "…" prints one answer.', quoted=True),
    **_all("usage cost stats status", "ba sessions show ID shows what a session used; in ba, /context does."),
    **_all("settings preferences", "ba config show prints the settings.", "set"),
    **_all("models model providers provider", "Start ba and type /model, or use ba -m PROVIDER/MODEL.", "set use"),
    **_all("rules policy approvals", "ba permissions list shows the rules.", "check"),
    **_all("serve server web app ide", "ba runs in the terminal only.", "start stop"),
    **_all("acp mcp-server", "ba can't be started as a server yet."),
    **_all("completion completions", "ba --install-completion sets it up for your shell.", "bash zsh fish"),
    **_all("search", "ba sessions search WORDS searches all sessions."),
    **_all("export", "ba sessions export ID writes a session to a file."),
    **_all("import", "ba sessions import FILE imports transcripts."),
    **_all("workflow workflows", "ba run FILE runs a workflow.", "run"),
    **_all("sandbox debug", "ba doctor checks the sandbox and everything else.", "status check"),
    **_all("feedback bug", "Tell the maintainers in the project's issues."),
}

ALIKE: Sequence[frozenset[str]] = [
    frozenset(words.split())
    for words in (
        "delete remove rm del drop uninstall",
        "list ls all status",
        "show get view cat info describe print",
        "new create init generate scaffold",
        "install add get",
        "set add put",
        "add allow new create",
        "search find grep",
        "validate check lint verify",
        "test try run",
        "fork copy duplicate clone branch",
        "export save dump",
        "prune clean cleanup clear gc",
        "rename mv title",
        "import load",
        "diff changes",
        "edit open",
    )
]
"""Words for the same sub-command."""
MODES = "Use --permission-mode auto (asks outside the sandbox only) or bypass (never asks)"
OPTIONS: Mapping[str, tuple[str, str]] = {
    name: (option, words)
    for names, option, words in (
        (
            "--yolo --dangerously-skip-permissions --allow-dangerously-skip-permissions --full-auto --auto-approve "
            "--dangerously-bypass-approvals-and-sandbox --yes --yes-always -y --auto --autopilot "
            "--always-approve --skip-permissions --no-confirm --bypass --trust-all-tools",
            "--permission-mode",
            MODES,
        ),
        (
            "--approval-mode --ask-for-approval --approval-policy --mode --permission -a",
            "--permission-mode",
            "See --permission-mode",
        ),
        ("--plan", "--permission-mode", "Use --permission-mode plan"),
        ("--auto-edit --accept-edits", "--permission-mode", "Use --permission-mode accept-edits"),
        ("--max-turns --max-steps --max-iterations --max-session-turns", "--max-loops", "Use --max-loops N"),
        ("--max-budget --max-budget-usd --max-price --budget", "--max-cost", "Use --max-cost USD"),
        ("--allowed-tools --allowedtools --allow-tool --tools", "--allow", "Use --allow RULE"),
        ("--disallowed-tools --disallowedtools --deny-tool", "--deny", "Use --deny RULE"),
        ("--json", "--output-format", "Use -p --output-format json"),
        ("--stream-json --streaming", "--output-format", "Use -p --output-format stream-json"),
        ("--headless --non-interactive --prompt --quiet -q --message --exec", "--print", 'Use -p "…"'),
        ("--session --session-id --thread --resume-id -s", "--resume", "Use --resume ID"),
        ("--last", "--continue", "Use --continue"),
        ("--fork-session --branch", "--fork", "Use --fork"),
        ("--cd --dir --directory --workdir --work-dir --working-directory -C -w", "--cwd", "Use --cwd DIR"),
        ("--include-directories --add-directory --include", "--add-dir", "Use --add-dir DIR"),
        ("--system-prompt --system", "--system-prompt-file", "Use --system-prompt-file FILE"),
        ("--no-colour --colour --color", "--no-color", "See --no-color"),
        ("--light --dark", "--theme", "Use --theme NAME"),
        ("--image --images --file --attach -i -f", "--print", "Name the file in the prompt, with @ before it"),
        ("--mcp-config --strict-mcp-config --mcp", "--print", "MCP servers are not supported yet"),
        ("--agent --agents", "--print", "Sub-agents are not supported yet"),
        ("--worktree", "--cwd", "Worktrees are not made yet: use --cwd DIR"),
        ("--verbose --debug -v -d", "--print", "ba doctor names the log file"),
        ("--sandbox --no-sandbox", "--print", "Commands run in a sandbox where there is one: see ba doctor"),
        ("--settings --config --profile", "--print", "See ba config --help"),
        ("--api-key --apikey", "--print", "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, or type /setup in ba"),
        ("--effort --thinking --reasoning --reasoning-effort", "--model", "Choose another model with --model"),
    )
    for name in names.split()
}
"""The option of ba that it stands for, and what to do; only where the command has that option."""


def command(argv: Sequence[str]) -> str:
    """Return what to do instead of the command that ``argv`` guesses; empty when it reads like a prompt."""
    guess = COMMANDS.get(argv[0])
    if guess is None:
        return ""
    if len(argv) == 1 or argv[1] in guess.follows or argv[1].startswith("--") or (guess.quoted and " " in argv[1]):
        return guess.words
    return ""


def subcommand(name: str, known: Sequence[str]) -> str:
    """Return the one of ``known`` that means the same as ``name``, or that was mistyped; empty when there is none."""
    same = {each for words in ALIKE if name in words for each in words}
    return next((each for each in known if each in same), "") or slip(name, known)


def option(name: str, known: Sequence[str]) -> str:
    """Return what to do instead of the option ``name``; empty when it is no guess, or stands for none of ``known``."""
    stands_for, words = OPTIONS.get(name.casefold() if name.startswith("--") else name, ("", ""))
    return f"{words}." if stands_for in known else ""
