"""Hints from the text of a command or of code without a grammar: words, the paths they name, how risky they look.

Hints only make a verdict stricter; none ever allows a command.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from ba_tui.core.questions import Risk
from ba_tui.core.text.patterns import regex
from ba_tui.permissions.paths import PathRefused, Workspace

LONGEST_RULE = 200
MOST_WORDS = 1_000
LOOKED_AT = 10_000
LONGEST_PART = 300
MOST_MATCHES = 200

_BREAKS = regex(r"""[\s'"`()<>|;&,={}:@]+""")
_HOME = regex(r"^(?:\$HOME|\$\{HOME\})(?=/|$)")

_SIMPLE = regex(r"[\n;|&]+")
_REDIRECTS = regex(r"(?<![<=>-])>{1,2}\|?(?!\s*(?:&[0-9-]|/dev/null))")

_DESTRUCTIVE = regex(
    r"""\b(?:rm|rmdir|unlink|shred|mkfs(?:\.\w+)?|wipefs|fdisk|parted|dropdb|killall|pkill|shutdown|reboot)\b
    |\bdd\b.*\bof= | \bfind\b.*\s-(?:delete|exec) | \bmv\b.*\s/dev/null | >\s*/dev/[hsv]d | :\(\)\s*\{
    |\bgit\b.*\b(?:clean|restore|rebase|filter-branch|filter-repo|reset\b.*--hard|push\b.*\s(?:-f|--force|--delete|--mirror))
    |\bgit\b.*\b(?:checkout\b.*\s[.-]|branch\b.*\s-D|stash\s+(?:drop|clear)|reflog\s+expire|worktree\s+remove)
    |\b(?:drop|truncate)\s+(?:table|database|schema|index|view)\b | \bdelete\s+from\b | \btruncate\s+-
    |\b(?:docker|podman)\b.*\b(?:rm|rmi|prune|kill)\b | \bkubectl\b.*\bdelete\b | \bterraform\b.*\bdestroy\b
    |\bkill\s+-(?:9|KILL) | \bch(?:mod|own)\b.*\s-R""",
    re.IGNORECASE | re.VERBOSE,
)
_NETWORK = regex(
    r"""\b(?:curl|wget|ssh|scp|sftp|rsync|ftp|telnet|nc|ncat|socat|dig|nslookup|ping|aria2c|gh|glab|npx|uvx|bunx)\b
    |\bgit\b.*\b(?:clone|fetch|pull|push|ls-remote|submodule)\b | \w+:// | \b(?:aws|gcloud|az|kubectl|terraform)\b
    |\b(?:pip3?|uv|poetry|npm|pnpm|yarn|cargo|gem|brew|apt|apt-get|dnf|yum|apk|conda|go|composer)\b.*
        \b(?:install|add|update|upgrade|sync|publish|download|get|fetch|search|ci|i)\b
    |\b(?:docker|podman)\b.*\b(?:pull|push|run|build|login)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WRITES = regex(
    r"""\b(?:tee|touch|mkdir|mv|cp|ln|install|chmod|chown|patch|truncate|tar|unzip|gunzip|gzip|split|mktemp)\b
    |\bsed\b.*\s(?:-[a-z]*i|--in-place) | \bperl\b.*\s-[a-z]*i
    |\bgit\b.*\b(?:add|commit|merge|apply|am|cherry-pick|revert|stash|tag|init|checkout|switch|reset|mv)\b""",
    re.IGNORECASE | re.VERBOSE,
)

_LITERAL = regex(
    r"""#[^\n]*|('{3}.*?'{3}|\"{3}.*?\"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")""",
    re.DOTALL,
)
_ADDRESS = regex(r"\w+://\S*")
_PLACE = regex(r"\{[^{}\n]*\}")
_OPERATOR = regex(r"(?<![\w./~*?/-])[*?/]+(?![\w./~*?/-])")
_CODE_COMMANDS = regex(r"\b(?:subprocess|pexpect|pty)\b | \bos\.(?:system|popen|exec|spawn|posix_spawn)", re.VERBOSE)
_CODE_DESTRUCTIVE = regex(
    r"""\b(?:rmtree|removedirs|rmdir|unlink|truncate)\b | \bos\.(?:remove|kill|killpg)\b
    |\b(?:drop|truncate)\s+(?:table|database|schema|index|view)\b | \bdelete\s+from\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CODE_WRITES = regex(
    r"""\bopen\([^)\n]*,\s*(?:mode\s*=\s*)?['"][rbt]*[wax+] | \.open\(\s*(?:mode\s*=\s*)?['"][rbt]*[wax+]
    |\b(?:write_text|write_bytes|mkdir|makedirs|touch|rename|renames|symlink|symlink_to|chmod|copy2?|copyfile|copytree|move
        |to_(?:csv|parquet|excel|json|feather|pickle|sql|hdf|stata)|savefig|sink_\w+|write_(?:csv|parquet|json))\s*\(""",
    re.VERBOSE,
)
_CODE_NETWORK = regex(
    r"""\b(?:requests|httpx|aiohttp|urllib|urllib3|http\.client|socket|ftplib|smtplib|imaplib|poplib|telnetlib|xmlrpc
        |paramiko|boto3|websockets?)\b | \w+://""",
    re.VERBOSE,
)


def risks_of(command: str, outside: bool) -> tuple[Risk, ...]:
    """Return what the user should know before allowing ``command``, from its text alone."""
    return _risks(*findings(command[:LOOKED_AT]), outside)


def findings(command: str) -> tuple[bool, bool, bool]:
    """Return whether a shell command writes, uses the network, destroys."""
    parts = [part[:LONGEST_PART] for part in _SIMPLE.split(command)]
    destructive = any(_DESTRUCTIVE.search(part) for part in parts)
    writes = destructive or bool(_REDIRECTS.search(command)) or any(_WRITES.search(part) for part in parts)
    return writes, any(_NETWORK.search(part) for part in parts), destructive


def risks_of_code(code: str, outside: bool) -> tuple[Risk, ...]:
    """Return the same for Python code. If it starts programs, its strings are checked as shell commands too."""
    code = code[:LOOKED_AT]
    destructive = bool(_CODE_DESTRUCTIVE.search(code))
    writes, network = destructive or bool(_CODE_WRITES.search(code)), bool(_CODE_NETWORK.search(code))
    if _CODE_COMMANDS.search(code):
        more = findings(literals(code).replace("\n", " "))
        writes, network, destructive = writes or more[0], network or more[1], destructive or more[2]
    return _risks(writes, network, destructive, outside)


def _risks(writes: bool, network: bool, destructive: bool, outside: bool) -> tuple[Risk, ...]:
    found: list[tuple[bool, Risk]] = [
        (True, "runs a command"),
        (writes, "writes"),
        (network, "network"),
        (outside, "outside the workspace"),
        (destructive, "destructive"),
    ]
    return tuple(risk for holds, risk in found if holds)


def without_operators(code: str) -> str:
    """Return Python code without stand-alone stars and slashes, which a shell would read as patterns and paths."""
    return _OPERATOR.sub(" ", code)


def literals(code: str) -> str:
    """Return the strings of Python code that may name a path, one per line, without addresses and lone slashes."""
    texts = (match.group(1) for match in _LITERAL.finditer(code[:LOOKED_AT]) if match.group(1))
    plain = (_PLACE.sub("x", _ADDRESS.sub("", text.strip("\"'"))) for text in texts)
    return "\n".join(text for text in plain if text.strip("/ "))


def rememberable(command: str) -> bool:
    """Return whether ``command`` may become a rule: one short, printable line without wildcards."""
    return (
        0 < len(command) <= LONGEST_RULE and command.isprintable() and command == command.strip() and "*" not in command
    )


def split_words(command: str) -> list[str]:
    """Return the words of ``command`` without quotes, and the pieces of them that could name a file."""
    try:
        lexer = shlex.shlex(command[:LOOKED_AT], posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        whole = list(itertools.islice(lexer, MOST_WORDS))
    except ValueError:
        whole = []
    pieces = itertools.chain(whole, _BREAKS.split(command[: 10 * LOOKED_AT]), *(_BREAKS.split(word) for word in whole))
    unescaped = (re.sub(r"\\(.)", r"\1", piece) for piece in pieces)
    return list(itertools.islice(dict.fromkeys(word for word in unescaped if word), MOST_WORDS))


def named_paths(command: str, workspace: Workspace, cwd: Path) -> Iterator[tuple[Path, Path]]:
    """Yield paths that words of ``command`` may name, as written and with links followed. Patterns are expanded on
    disk."""
    for word in split_words(command):
        plain = _HOME.sub("~", word)
        for candidate in (plain, *_matches(plain, cwd)):
            try:
                yield workspace.both(candidate, cwd)
            except PathRefused:
                continue


def looks_outside(command: str, workspace: Workspace, cwd: Path) -> bool:
    """Return whether a word of ``command`` that looks like a path leads out of the workspace."""
    if not workspace.contains(cwd):
        return True
    for word in split_words(command):
        plain = _HOME.sub("~", word)
        if plain.startswith(("/", "~")) or ".." in plain.split("/"):
            try:
                path = workspace.resolve(plain, cwd)
            except PathRefused:
                continue
            if not workspace.contains(path) and path != Path(os.devnull):
                return True
    return False


def _matches(word: str, cwd: Path) -> list[str]:
    """Return what the shell would currently expand a wildcard word to."""
    if "**" in word or len(word) > LONGEST_RULE or not glob.has_magic(word):
        return []
    try:
        found = glob.iglob(os.path.expanduser(word), root_dir=cwd)  # noqa: PTH111, PTH207 - as the shell does it
        return list(itertools.islice(found, MOST_MATCHES))
    except (OSError, ValueError, RecursionError, re.error):
        return []
