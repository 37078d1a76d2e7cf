"""Commands that people know from other assistants: each works, or one line says what to use here."""

from __future__ import annotations

import re

import pytest

from ba_tui.cli.commands import app_parts, guesses, shell_commands
from ba_tui.command import Command
from ba_tui.faces.tui.commands import complete, nearest
from ba_tui.resources import bundled

SAME, INSTEAD = guesses().commands, guesses().slash


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        ("subagents", "/agents?"),
        ("plugin", "Commands and skills of plugins count"),
        ("mcps", "/mcp?"),
        ("memories", "/memory?"),
        ("price", "/cost?"),
        ("wipe", "/clear?"),
        ("logout", "keys.yaml"),
        ("preferences", "/config?"),
        ("pr-review", "/review?"),
        ("yolo", "/mode auto"),
        ("agnets", "/agents?"),
        ("charge", "Type / to see all commands."),
        ("xyzzy", "Type / to see all commands."),
    ],
)
def test_a_guess_is_answered_by_what_it_means(guess: str, words: str) -> None:
    line = nearest(guess, app_parts().rows, guesses())
    assert line.startswith(f"There is no /{guess}. ")
    assert words in line


def test_guesses_name_what_there_is_and_fit_on_the_line() -> None:
    names = {name for command in app_parts().rows if command.slash for name in (command.name, *command.aliases)}
    names |= {file.stem for file in (bundled("config") / "commands").glob("*.md")}
    assert not names & {*SAME, *INSTEAD}, "a guess never stands before what there is"
    assert set(SAME.values()) <= names
    named = {name for words in INSTEAD.values() for name in re.findall(r"(?<!\S)/([a-z-]+)", words)}
    assert named <= names
    commands = {name for words in INSTEAD.values() for name in re.findall(r"`ba ([a-z]+)", words)}
    assert commands <= set(shell_commands())
    assert max(len(nearest(guess, (), guesses())) for guess in (*SAME, *INSTEAD)) <= 78


CLAUDE_CODE = """
add-dir advisor agents allowed-tools app autocompact autofix-pr background bashes bg branch brief btw bug cd checkpoint
chrome clear color compact config context continue copy cost daemon desktop diff doctor effort exit export extra-usage
fast feedback focus fork goal heapdump help hooks ide init init-verifiers insights install install-github-app
install-slack-app ios keybindings login logout loops mcp memory mobile model new output-style passes pause-memory
permissions plan plugin plugins powerup pr-comments privacy-settings proactive quit radio rate-limit-options recap
release-notes reload-plugins reload-skills remote remote-control remote-env rename reset resume review rewind routines
sandbox schedule scroll-speed security-review session settings setup-bedrock setup-vertex share skills stats status
statusline stickers stop tasks team-onboarding teleport terminal-setup theme todos tui ultraplan ultrareview undo update
upgrade usage usage-credits version vim voice web-setup wellbeing workflows"""
CODEX = """
agent app apps approvals archive btw cd clear compact copy debug-config delete diff exit experimental export fast
feedback fork goal hooks ide import init keymap logout mcp memories mention model new permissions personality pets plan
plugins ps pwd quit raw realtime recap rename resume review rollout settings setup-default-sandbox side skills status
statusline stop subagents theme title vim voice worktree"""
OPENCODE = """
agents compact connect details editor exit export fork help init mcps models move new redo rename review sessions share
skills status summarize thinking themes timeline undo unshare"""
VIBE_AND_OTHERS = """
approve auto clear clear-queue compact config continue debug exit help init log mcp memory model mode offload queue
quit reload remember rename restore resume rewind status summary terminal-setup threads tokens tools trace version
vim voice yolo"""


@pytest.mark.parametrize("theirs", [CLAUDE_CODE, CODEX, OPENCODE, VIBE_AND_OTHERS], ids=("cc", "cx", "oc", "vb"))
def test_every_command_of_habit_works_or_has_a_line(theirs: str) -> None:
    """Names as the programs list them: Claude Code 2.1.197, Codex 0.169, OpenCode 1.18, Vibe 3.0."""
    names = {name for command in app_parts().rows if command.slash for name in (command.name, *command.aliases)}
    names |= {file.stem for file in (bundled("config") / "commands").glob("*.md")}
    unknown = [name for name in theirs.split() if name not in names and name not in SAME and name not in INSTEAD]
    assert not unknown


def test_a_name_people_know_is_not_completed_to_another() -> None:
    rows = [Command("bugfix", "Fix a bug", origin="x.md"), Command("todos", ""), Command("ideas", "")]
    assert not complete("bug", rows, guesses())[0].sure, "/bug is answered by its line"
    assert complete("bugf", rows, guesses())[0].sure
    assert not complete("ide", rows, guesses())[0].sure
    assert complete("todo", rows, guesses())[0].sure, "it means the same"
    assert complete("bugfix", rows, guesses())[0].sure
