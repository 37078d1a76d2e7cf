"""Commands that people know from other assistants, and what ba has for them. A name is answered by what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ba_tui.core.text import wording

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
