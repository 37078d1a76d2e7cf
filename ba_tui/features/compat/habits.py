"""Options of other assistants, such as Claude Code 2.1 and Codex 0.169, that users and programs type from habit.

An option with a counterpart in ba is translated; for others the error says what to use instead, as guesses.yaml has it.
Imported only if the command line has an unknown option.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ba_tui.cli.launch import folder_of
from ba_tui.command import read_guesses
from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.features.compat import GUESSES
from ba_tui.flags import FLAGS, sets_value
from ba_tui.settings import claude_rules
from ba_tui.settings.tool_names import ALIASES

_RULE = regex(r"(?P<name>[A-Za-z][\w-]*)(?:\(.*\))?")
_OWN = regex(r"@?[a-z_]+(?:\(.*\))?")
_ABSENT = regex(
    r"Task(?!Output|Stop)\w+|(?:Enter|Exit)[A-Z]\w+|SlashCommand|\w+McpResources?\w*|Cron\w+|Workflow|SendMessage|LSP|Monitor"
)
"""Tools of Claude Code without a counterpart in ba; rules about them have no effect."""


def looks_like_rule(word: str) -> bool:
    """Return whether ``word`` is a tool's name or a rule, and not the beginning of a prompt."""
    found = _RULE.fullmatch(word)
    if found is None:
        return "," in word and all(map(looks_like_rule, _split(word)))
    name = found["name"]
    return (
        name in claude_rules.TOOLS or name in ALIASES or name.startswith("mcp__") or _ABSENT.fullmatch(name) is not None
    )


def listed_rules(lists: Sequence[str], option: str, base: Path) -> Iterator[str]:
    """Yield the rules of ba for lists such as ``Read,Bash(git *)``; a path with a leading slash starts from ``base``.
    Raises UsageError: no rule of ba has the same meaning, or denies at least as much."""
    for text in (rule for each in lists for rule in _split(each)):
        found = _RULE.fullmatch(text)
        if found and _ABSENT.fullmatch(found["name"]):
            continue
        if _OWN.fullmatch(text) and not text.startswith("mcp__"):
            yield text
            continue
        made = claude_rules.translated(text, option.removeprefix("--"), base)
        if made.why:
            raise UsageError(f"{option} can't say {text[:60]!r}: {made.why}.", "See ba guide permissions.")
        yield from made.rules


def _split(text: str) -> Iterator[str]:
    """Split a list of rules at commas and spaces outside parentheses."""
    depth, word = 0, ""
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth <= 0 and (char == "," or char.isspace()):
            if word:
                yield word
            word = ""
        else:
            word += char
    if word:
        yield word


SAME_MODES: Mapping[str, str] = {"acceptEdits": "accept-edits", "bypassPermissions": "bypass"}
"""ba's names of Claude Code's permission modes; ``default``, ``plan`` and ``auto`` have the same name."""
QUIET = "dontAsk"


def _rules(option: str, given: Sequence[str], argv: Sequence[str]) -> Iterator[str]:
    """Yield ``option`` and a rule for each rule in ``given``; a leading slash means the working directory."""
    folder = next((value for name in ("--cwd", "--cd", "-C") if (value := _value(argv, name))), "")
    for rule in listed_rules(given, option, folder_of(Path(folder) if folder else None)):
        yield from (option, rule)


def _unknown(name: str, words: str) -> UsageError:
    return UsageError(f"Unknown option {name}.", words)


def translated(argv: Sequence[str]) -> list[str]:
    """Return ``argv`` with options of other assistants replaced by ba's. Raises UsageError: an option has no
    counterpart; the hint says what to use instead."""
    words, done, guesses = list(reversed(argv)), list[str](), read_guesses(GUESSES)
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
        elif row := FLAGS.get(name):
            _check_setting(word, words)
            done.append(word)
            if row.type is not bool and not sign and words:
                done.append(words.pop())
        elif name == "--setting-sources":
            given = value if sign else next(_values(words), "")
            if {each.strip() for each in given.split(",")} != {"user", "project", "local"}:
                raise _unknown(name, "ba reads all of user, project and local; for one run use flags instead.")
        elif name in guesses.options:
            done += _same(name, guesses.options[name], [value] if sign else words, argv)
        elif advice := guesses.option(name, FLAGS):
            raise _unknown(name, advice)
        else:
            done.append(word)
    return done


def _same(name: str, ours: str, words: list[str], argv: Sequence[str]) -> Iterable[str]:
    """Return ba's words for the option ``name``, which is ``ours``. A value is removed from the end of ``words``.
    Raises UsageError: the option has no value, or no rule of ba has the same meaning."""
    row = FLAGS.get(ours)
    if row is None or row.type is bool:
        return ours.split()
    given = list(_values(words, rules=row.many))
    if not given:
        raise UsageError(f"Option {name} needs a value.", f"It is ba's {ours}: see ba --help.")
    return _rules(ours, given, argv) if row.many else [ours, *given]


def _value(argv: Sequence[str], name: str) -> str:
    """Return the value of the option ``name``; empty if it is not given."""
    for word, following in zip(argv, [*argv[1:], ""], strict=True):
        if word == "--":
            break
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return ""


def _streams(argv: Sequence[str]) -> bool:
    """Return whether the output is in the wire format of Claude Code."""
    return _value(argv, "--output-format") == "claude-stream-json" or _value(argv, "--input-format") == "stream-json"


def _mode(mode: str, *, asks: bool) -> str:
    """Return ba's name of a permission mode. Raises UsageError."""
    if mode == QUIET:
        if asks:
            raise UsageError(
                f"Mode {QUIET} is for runs that ask nobody.", "Use it with -p, and without --permission-prompt-tool."
            )
        return "default"
    return SAME_MODES.get(mode, mode)


def _check_verbose(argv: Sequence[str]) -> None:
    """Accept ``--verbose`` only for Claude Code's stream-json, which requires it there. Raises UsageError."""
    if _streams(argv):
        return
    if _value(argv, "--output-format") == "stream-json":
        words = "For Claude Code's lines use --output-format claude-stream-json; for ba's own leave out --verbose."
        raise _unknown("--verbose", words)
    raise _unknown("--verbose", "ba -p tells each step on stderr; in the app Ctrl+O opens a result in full.")


def _check_setting(word: str, words: Sequence[str]) -> None:
    """Refuse ``-c key=value``, which sets an option in Codex. Raises UsageError."""
    if word == "-c" and words and sets_value(words[-1]):
        hint = f"Use a flag (ba --help), or ba config set. To send it: ba -c -- {words[-1]}."
        raise UsageError(f"-c continues a session, and does not set {words[-1]}.", hint)


def _values(words: list[str], *, rules: bool = False) -> Iterator[str]:
    """Yield an option's value, or its list of ``rules``, and remove them from the end of ``words``."""
    if words and (rules or not words[-1].startswith("-")):
        yield words.pop()
        while rules and words and looks_like_rule(words[-1]):
            yield words.pop()
