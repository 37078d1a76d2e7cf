"""Commands that people know from other assistants, and what ba has for them. Their options are in ``habits``.

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
    **_all("agent subagents subagent", "ba agents list shows the agents; in the app, ask for one by its name.", "run"),
    **_all("memories", "See ba memory --help; in the app, “# TEXT” remembers.", "list search"),
    **_all(
        "plugin plugins extension extensions",
        "ba installs no plugins; commands and skills of those of Claude Code count: see ba guide commands.",
        "install update",
    ),
    **_all("login auth setup-token onboarding", "Start ba and type /setup to enter a key.", "login logout status"),
    **_all("setup", "Start ba and type /setup to enter a key."),
    **_all("init", 'Start ba and type /init, or: ba -p --permission-mode accept-edits "/init".'),
    **_all("logout", "Delete the key from keys.yaml, in the folder of the file that ba config path prints."),
    **_all("update upgrade", "Update ba as you installed it: uv, pipx or pip.", "--check now check"),
    **_all("install uninstall", "Install or remove ba with uv, pipx or pip."),
    **_all("help commands", "See ba --help."),
    **_all("docs doc manual man documentation", "ba guide lists the pages of the guide."),
    **_all("version about", "See ba --version."),
    **_all("resume", "ba -r chooses a session, ba -r ID opens one, ba -c the newest.", "last --last"),
    **_all("fork", "ba -c --fork continues in a copy of the newest session, ba -r ID --fork of another.", "last"),
    **_all("continue", "ba -c continues this folder's newest session."),
    **_all("history threads chats list ls", "ba sessions list shows the saved sessions.", "all"),
    **_all("exec", 'ba -p "…" prints one answer.', "resume review", quoted=True),
    **_all("review code-review", 'ba -p "/review" reviews the uncommitted changes, as /review does in ba.'),
    **_all("ultrareview", 'Nothing runs in a cloud: ba -p "/review main...HEAD" reviews a branch here.', "main master"),
    **_all("apply", "Nothing has to be applied: ba changes the files here, and /diff shows what changed."),
    **_all("cloud github pr", "Nothing runs in a cloud: ba works in the folder where it starts.", "exec run install"),
    **_all("archive unarchive delete", "ba sessions delete ID deletes a session; there is no archive."),
    **_all("queue", "Type the next prompt while ba works: it waits in line."),
    **_all("session", "ba sessions list shows the saved sessions."),
    **_all("project", "ba sessions list shows what is kept of a folder, ba trust --revoke forgets its trust.", "purge"),
    **_all(
        "auto-mode", "ba permissions list shows the rules; ba guide permissions says what mode auto does.", "config"
    ),
    **_all("features", "ba config show prints the settings.", "enable disable"),
    **_all("attach tui", "ba -r opens a saved session."),
    **_all("migrate-rollouts migrate-nfs-db", "ba sessions import FILE imports transcripts."),
    **_all("usage cost stats status", "ba sessions show ID shows what a session used; in ba, /cost does."),
    **_all("settings preferences", "ba config show prints the settings.", "set"),
    **_all("models model providers provider", "Start ba and type /model, or use ba -m PROVIDER/MODEL.", "set use"),
    **_all("rules policy approvals", "ba permissions list shows the rules.", "check"),
    **_all(
        "serve server web app ide gateway remote-control app-server exec-server daemon",
        "ba runs in the terminal only; a program can talk to it as ba guide programs says.",
        "start stop",
    ),
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
