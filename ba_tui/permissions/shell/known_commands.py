"""The known commands of ``config/shell_commands.yaml``: which only read, with which options and operands.

``call_reading`` applies this to a call; ``judgement`` judges the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from dataclasses import fields as fields_of
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen
from ba_tui.resources import bundled

FLAG, VALUE, FILE, MAYBE, FOLDER, PAIR = "", ":", "@", "?", "/", "%"
"""Kinds of options: without a value, with a value, with a file, with an optional attached value, with a working
directory, with a name and a value."""

_PROGRAM_FOLDERS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/")
_NONE: frozenset[str] = frozenset()
_NOTHING: Mapping[str, str] = {}


@frozen
class CommandEntry:
    """One command or subcommand.

    - ``reads``: with these options and operands alone it changes nothing
    - ``options``: kinds of options by name; ``operands``: kinds of operands in order (``text file``; a plural takes the
    rest)
    - ``replaced_by``: options that replace the first operand; ``needs``: one of them must be present
    - ``dashes``: long options have one dash; ``check``: how its script is checked
    - ``strict``: surplus operands change something; ``remote``: a colon in a file name means another machine
    - ``free``: its words are only printed; ``ends``: the first operand ends the options
    - ``never``: options that only a rule naming them covers, with the reason
    - ``loose``: options that are harmless only in a read-only sandbox
    - ``effects``: risks of a call that does more than read
    - ``recursive``, ``follows``: options (or ``always``) with which it reads all files below a folder, and follows
    links there
    - ``commands``: subcommands by pattern of words, after the ``before`` options; ``groups``: words that only lead to
    them
    - ``help``: ``--help`` works after any subcommand
    """

    name: str
    reads: bool = True
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    operands: tuple[str, ...] = ()
    replaced_by: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    dashes: bool = False
    check: str = ""
    strict: bool = False
    free: bool = False
    remote: bool = False
    ends: bool = False
    loose: frozenset[str] = frozenset()
    never: Mapping[str, str] = field(default_factory=dict[str, str])
    effects: frozenset[str] = frozenset()
    why: str = ""
    recursive: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()
    before: Mapping[str, str] = field(default_factory=dict[str, str])
    commands: Mapping[tuple[str, ...], CommandEntry] = field(default_factory=dict[tuple[str, ...], "CommandEntry"])
    dashed: frozenset[str] = frozenset()
    """The words of ``commands`` that look like options."""
    groups: frozenset[str] = frozenset()
    help: bool = False
    beside: Mapping[str, str] = field(default_factory=dict[str, str])
    """By option: options of which one must also be present."""
    hosts: frozenset[str] = frozenset()
    """The only machines that its words may name."""
    mild: Mapping[str, str] = field(default_factory=dict[str, str])
    """Patterns of option values that are harmless for otherwise dangerous options."""
    dry: frozenset[str] = frozenset()
    """Options that promise to change nothing but may run code: only a sandbox guarantees it."""

    def command(self, words: tuple[str, ...]) -> tuple[CommandEntry | None, int]:
        """Return the longest subcommand that ``words`` begin with, and the number of words in its name."""
        led = 0
        while led < len(words) and words[led] in self.groups:
            led += 1
        best: tuple[CommandEntry | None, int, int] = (None, 0, 0)
        for pattern, entry in self.commands.items():
            # Groups may distinguish subcommands of the same name.
            for start in range(max(0, led - len(pattern) + 1), led + 1):
                taken, end = words[start : start + len(pattern)], start + len(pattern)
                if end > led and len(taken) == len(pattern) and all(map(fits, taken, pattern)):
                    best = max(best, (entry, end, len(pattern)), key=lambda each: each[1:])
        return best[:2]


def plain_name(program: str) -> str:
    """Return ``/usr/bin/ls`` as ``ls``. A program elsewhere keeps its path, since it may be any program."""
    for folder in _PROGRAM_FOLDERS:
        if program.startswith(folder) and "/" not in program[len(folder) :]:
            return program[len(folder) :]
    return program


def fits(word: str, pattern: str) -> bool:
    """Return whether ``word`` is one of the alternatives in ``pattern``."""
    plain, wild = _alternatives(pattern)
    return word in plain or (bool(wild) and any(fnmatchcase(word, each) for each in wild))


@cache
def _alternatives(pattern: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the literal words of ``pattern`` and the wildcards."""
    given = pattern.split(",")
    wild = tuple(each for each in given if set(each) & set("*?["))
    return frozenset(given) - set(wild), wild


@frozen
class KnownCommands:
    """All entries by program, the wrappers, and the harmless variables."""

    programs: Mapping[str, CommandEntry]
    wrappers: frozenset[str]
    variables: frozenset[str]
    asking: Mapping[str, frozenset[str]]
    """By word: the programs that only print their version or help if it is the only argument."""
    loads: Mapping[str, Sequence[tuple[tuple[str, ...], tuple[str, ...]]]]
    """By program: a subcommand, and project files whose code it runs whatever its arguments."""
    offers: frozenset[tuple[str, ...]]
    """Commands for which a rule with any further words is offered; ``*`` stands for one word."""
    data: frozenset[tuple[str, ...]]
    """Commands that treat their input only as data."""
    scripts: frozenset[str]
    """Programs that treat their input as data if their script is named."""
    plain: frozenset[str]
    """Programs that may run without asking outside a sandbox if all words are known."""
    listers: frozenset[str]
    """Programs that show names and sizes of files but no contents."""


@lru_cache(maxsize=1)
def known() -> KnownCommands:
    """Return the commands of the bundled file, which is read once, for the first command.

    Raises:
        UsageError: the file is missing or broken.
    """
    import yaml  # noqa: PLC0415 - sessions without a command do without

    path = bundled("config") / "shell_commands.yaml"
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        # Both loaders are safe; the C loader is ten times as fast.
        data = cast("dict[str, Any]", loader(path.read_bytes()).get_single_data())
        programs: dict[str, CommandEntry] = {}
        for names, given in data["programs"].items():
            for name in str(names).split():
                programs[name] = _entry(name, given, None)
        asking = {
            word: frozenset(
                name for words, names in data["help"].items() if word in words.split() for name in _set(names)
            )
            for word in " ".join(data["help"]).split()
        }
        loads: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for calls, files in data["loads"].items():
            for call in calls.split():
                words = tuple(call.split("/"))
                loads.setdefault(words[0], []).append((words, tuple(files.split())))
        offers = frozenset(tuple(str(each).split()) for each in data["offers"])
        fed = frozenset(tuple(call.split("/")) for call in data["data"].split())
        wrappers, variables, scripts, plain, listers = (
            _set(data[key]) for key in ("wrappers", "variables", "scripts", "plain", "listers")
        )
        return KnownCommands(programs, wrappers, variables, asking, loads, offers, fed, scripts, plain, listers)
    except (OSError, KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path} can't be used: {error}.", "Restore the file or install ba again.") from error


def _entry(name: str, given: Any, above: CommandEntry | None) -> CommandEntry:
    """Return an entry. ``given``: options as a text, or all fields; ``above``: the parent, whose options subcommands
    share."""
    fields = cast("dict[str, Any]", given if isinstance(given, dict) else {"options": given or ""})
    unknown = set(fields) - _FIELDS
    if unknown:
        raise ValueError(f"{name}: unknown {', '.join(sorted(unknown))}")
    never, options = _reasons(fields.get("never")), _options(fields.get("options"))
    common = {name: kind for name, kind in above.options.items() if name not in never} if above else _NOTHING
    reads = bool(fields.get("reads", "commands" not in fields))
    # Readers, and entries that define operands, may read standard input; programs that run code may not.
    feared = {
        name: why
        for name, why in (above.never if above else _NOTHING).items()
        if name not in options and not (name == "!" and (reads or "operands" in fields))
    }
    entry = CommandEntry(
        name,
        reads=reads,
        options={**common, **options},
        operands=_operands(fields, above),
        replaced_by=_set(fields.get("replaced_by")),
        needs=_set(fields.get("needs")),
        dashes=bool(fields.get("dashes", above.dashes if above else False)),
        check=str(fields.get("check", "")),
        strict=bool(fields.get("strict", above.strict if above else False)),
        free=bool(fields.get("free", False)),
        remote=bool(fields.get("remote", above.remote if above else False)),
        ends=bool(fields.get("ends", False)),
        loose=_set(fields.get("loose")),
        dry=_set(fields.get("dry")),
        mild=_reasons(fields.get("mild")),
        never={**feared, **never},
        effects=_set(fields.get("effects"), ",") | (above.effects if above else _NONE),
        why=str(fields.get("why", above.why if above and not reads else "")),
        recursive=_set(fields.get("recursive")),
        follows=_set(fields.get("follows")),
        before=_options(fields.get("before")),
        groups=_set(fields.get("groups")),
        help=bool(fields.get("help", False)),
        beside=_reasons(fields.get("beside")),
        hosts=_set(fields.get("hosts")) or (above.hosts if above else _NONE),
    )
    commands: dict[tuple[str, ...], CommandEntry] = {}
    for words, sub in cast("dict[str, Any]", fields.get("commands") or {}).items():
        commands[tuple(str(words).split())] = _entry(f"{name} {words}", sub, entry)
    object.__setattr__(entry, "commands", commands)
    object.__setattr__(entry, "dashed", frozenset(word for words in commands for word in words if "-" in word))
    return entry


_FIELDS = frozenset(each.name for each in fields_of(CommandEntry)) - {"name", "dashed"} | {"source"}


def _operands(fields: Mapping[str, Any], above: CommandEntry | None) -> tuple[str, ...]:
    if "operands" in fields:
        return tuple(str(fields["operands"] or "").split())
    return above.operands if above else ("texts",)


def _options(text: object) -> dict[str, str]:
    found: dict[str, str] = {}
    for token in str(text or "").split():
        kind = token[-1] if len(token) > 1 and token[-1] in ":@?/%" else ""
        found[token.removesuffix(kind) if kind else token] = kind
    return found


def _reasons(text: object) -> dict[str, str]:
    """Parse reasons such as ``-o --output: writes a file; -x: runs a command``."""
    found: dict[str, str] = {}
    for clause in str(text or "").split(";"):
        names, _, reason = clause.partition(": ")
        found.update(dict.fromkeys(names.split(), reason.strip()))
    return found


def _set(text: object, separator: str | None = None) -> frozenset[str]:
    return frozenset(part.strip() for part in str(text or "").split(separator) if part.strip())
