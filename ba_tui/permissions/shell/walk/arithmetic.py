"""Whether arithmetic in a command only meets numbers: bash runs ``$(…)`` inside a text that it calculates with.

The names and commands that are computed with were noted when the command was read.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.shell.tokens import TokenFindings
from ba_tui.permissions.shell.tree import Chain, CommandList, Pipeline, SimpleCommand
from ba_tui.permissions.shell.walk.word_values import numbers_in, value_of

_DATE = regex(r"\+(?:%[sYmdHMSjNueVwyk])+")
_POSITIONAL = regex(r"[0-9@*_]|[1-9][0-9]+")


def uncertain(findings: TokenFindings) -> str:
    """Why something computed with may be no number; empty when all are."""
    looked: set[str] = set()
    todo = list(findings.counted)
    while todo:
        name = todo.pop()
        if name in looked:
            continue
        looked.add(name)
        if _POSITIONAL.fullmatch(name):
            return f"it calculates with ${name}, whose value is known only when it runs"
        if name in findings.wild or "*" in findings.wild:
            return f"it calculates with {name!r}, whose value is known only when it runs"
        for token in findings.sources.get(name, ()):
            names = numbers_in(token, findings)
            if names is None:
                return f"it calculates with {name!r}, which may be no number"
            findings.counted.update(names)
            todo += names
    if not all(_counts(run) for run in findings.counted_runs):
        return "it calculates with the output of a command"
    return ""


def _counts(run: object) -> bool:
    """Whether a substitution prints numbers only."""
    if not isinstance(run, CommandList) or len(run.items) != 1 or not isinstance(run.items[0], Chain):
        return False
    chain = run.items[0]
    last = chain.items[-1]
    if isinstance(last, Pipeline):
        if len(last.items) > 1 and _texts(last.items[-1])[:2] == ["tr", "-d"]:
            return _numeric(last.items[-2], piped=len(last.items) > 2)
        last, piped = last.items[-1], True
    else:
        piped = False
    return len(chain.items) == 1 and _numeric(last, piped)


def _texts(node: object) -> list[str | None]:
    return [value_of(token, {}) for token in node.words] if isinstance(node, SimpleCommand) else []


def _numeric(node: object, piped: bool) -> bool:
    words = _texts(node)
    if not words or words[0] is None:
        return False
    rest = words[1:]
    options = all(word is not None and word.startswith("-") for word in rest)
    match words[0]:
        case "nproc":
            return options
        case "wc":
            return options and not any(word and "files0" in word for word in rest)
        case "grep":
            return piped and len(rest) == 2 and rest[0] in ("-c", "-ci", "-ic", "-cE", "-cF", "-cv", "-vc")
        case "date":
            return len(rest) == 1 and rest[0] is not None and bool(_DATE.fullmatch(rest[0]))
        case "id":
            return rest in (["-u"], ["-g"])
        case "seq":
            return all(word is not None and re.fullmatch(r"-?[0-9]+", word) for word in rest)
        case "git":
            return rest[:2] == ["rev-list", "--count"]
        case "stat":
            return rest[:2] in (["-c", "%s"], ["-c%s"], ["-c", "%Y"], ["-f", "%z"], ["-f", "%m"])
        case _:
            return False
