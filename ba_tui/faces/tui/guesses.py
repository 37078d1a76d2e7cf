"""Commands that people know from other assistants, and what ba has for them. A name is answered by what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ba_tui.core.text import wording

SAME: Mapping[str, str] = {
    guess: command
    for command, guesses in {
        "clear": "reset restart wipe newchat new-session",
        "compact": "summarize summarise summary condense offload compaction",
        "context": "usage cost costs price tokens token stats statistics quota budget limits",
        "copy": "yank clipboard",
        "diff": "changes review-changes",
        "editor": "edit external-editor",
        "exit": "bye close leave",
        "export": "save share dump transcript download",
        "guide": "guides doc docs documentation manual howto how-to faq readme",
        "help": "h ? commands keys keybindings hotkeys shortcuts bindings keymap",
        "history": "prompts",
        "inspector": "details output expand verbose",
        "mode": "modes approve approvals approval approval-mode permission-mode accept-edits",
        "model": "models llm provider providers",
        "permissions": "permission rules allow deny policy allowlist",
        "redraw": "refresh repaint",
        "rename": "title name",
        "resume": "load threads thread session chats chat switch-session list history-sessions",
        "rewind": "restore checkpoint checkpoints revert rollback back unsend",
        "setup": "auth signin sign-in key keys-setup apikey api-key onboarding provider-setup",
        "shells": "ps jobs bash processes terminals",
        "skills": "skill",
        "theme": "themes color colors colour colours",
        "todos": "todo tasklist",
        "tools": "tool functions",
        "trust": "trusted folders",
    }.items()
    for guess in guesses.split()
}
"""The command that does the same."""

OTHERWISE: Mapping[str, str] = {
    guess: words
    for guesses, words in (
        ("agents agent subagents subagent team", "Sub-agents are not supported yet."),
        ("mcp servers", "MCP servers are not supported yet. See /tools."),
        ("plugin plugins extensions extension marketplace", "Plugins are not supported. See /skills."),
        ("memory memories remember forget", "Memory is not supported yet; AGENTS.md is read."),
        ("init", "Ask for it: “Write an AGENTS.md for this project.”"),
        ("plan", "/mode plan only reads."),
        ("yolo auto bypass auto-approve autoapprove full-auto", "/mode auto asks outside the sandbox only."),
        ("stop cancel interrupt abort", "Press Esc to interrupt."),
        ("review pr-review code-review pr-comments", "Ask for it: “Review my changes.”"),
        ("security-review", "Ask for it in your own words."),
        ("commit", "Ask for it: “Commit my changes.”"),
        ("config configure settings preferences options", "Run `ba config show` in a shell."),
        ("hooks hook", "Run `ba hooks list` in a shell."),
        ("logout signout sign-out", "Delete the key from keys.yaml."),
        ("doctor debug bug health", "Run `ba doctor` in a shell."),
        ("sandbox", "Run `ba doctor` in a shell."),
        ("version about release-notes changelog", "Run `ba --version` in a shell."),
        ("update upgrade", "Update ba with uv, pipx or pip."),
        ("feedback", "Tell the maintainers in the project's issues."),
        ("fork branch", "Run `ba sessions fork ID` in a shell."),
        ("search find grep", "Tab, then Ctrl+F searches this session."),
        ("delete remove", "Run `ba sessions delete ID` in a shell."),
        ("import", "Run `ba sessions import FILE` in a shell."),
        ("demo tour tutorial", "Run `ba demo` in a shell."),
        ("redo", "/rewind undo takes the last rewind back."),
        ("add add-dir cd cwd workspace", "Start ba with --add-dir DIR or --cwd DIR."),
        ("mention file files read attach", "Type @ and the name of the file."),
        (
            "image paste paste-image picture screenshot",
            "Ctrl+V pastes a picture.",
        ),
        ("run sh exec bash terminal !", "Type ! and the command: !ls. /shell does the same."),
        ("retry again regenerate", "Press Up for the prompt, or use /rewind."),
        ("btw queue steer", "While a turn runs, Enter queues your words."),
        ("web fetch browse", "Ask for it, with the address."),
        ("vim vi emacs", "Vim keys are not supported yet. Ctrl+G opens $EDITOR."),
        ("ide terminal-setup", "ba needs no setup for that."),
        ("goal loop schedule", "That is not supported yet."),
        ("worktree", "Start ba in a worktree that you made."),
        ("workflow workflows", "Run `ba run FILE` in a shell."),
        ("data datasets sql query notebook chart", "Ask for it, and name the file with @."),
        ("thinking think fast reasoning effort", "The model decides. See /model."),
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
