"""Checks scripts in reading commands: whether a script of sed, awk or jq does more than transform its input.

Each check returns a problem in a few words; empty means that it only reads. Unknown constructs are problems.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.sql import classify

_ADDRESS = regex(r"\s*(?:(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)\s*)?")
_PLAIN = frozenset("pPdDhHgGxnN=lzF")
_FLAGS = regex(r"[gpiIm0-9M]*")
_TO_END = regex(r"[^\n]*")
_LABEL = regex(r"[ \t]*[A-Za-z0-9_.-]*[ \t]*")
_NEXT = regex(r"[ \t]*(?:#[^\n]*)?(?:[;\n]|$|(?=\}))")


def sed_problem(script: str) -> str:
    """Return a problem for ``w``, ``r``, ``e``, flags of ``s`` that write or run, and scripts that can't be parsed."""
    at, depth = 0, 0
    try:
        while at < len(script):
            if script[at] in " \t\n;":
                at += 1
            elif script[at] == "#":
                at = _end(_TO_END, script, at)
            elif script[at] == "}":
                depth, at = depth - 1, at + 1
            else:
                at, opened = _sed_command(script, _addresses(script, at))
                depth += opened
    except (IndexError, ValueError) as error:
        return str(error) if isinstance(error, ValueError) else "ba can't check its script"
    return "" if depth == 0 else "ba can't check its script"


def _addresses(script: str, at: int) -> int:
    for _ in range(2):
        at = _end(_ADDRESS, script, at)
        if script[at] in "/\\":
            mark = at + 1 if script[at] == "\\" else at
            at = _delimited(script, mark + 1, script[mark])
            while script[at] in "IM":
                at += 1
        while script[at] in " \t":
            at += 1
        if script[at] != ",":
            break
        at += 1
    while script[at] in "! \t":
        at += 1
    return at


def _sed_command(script: str, at: int) -> tuple[int, int]:
    """Return where the command at ``at`` ends, and how many blocks it opens."""
    name = script[at]
    at += 1
    if name == "{":
        return at, 1
    if name in "sy":
        mark = script[at]
        if mark in "\n\\;":
            raise ValueError("ba can't check its script")
        at = _delimited(script, _delimited(script, at + 1, mark), mark)
        at = _end(_FLAGS, script, at) if name == "s" else at
    elif name in "aic":
        return _text_end(script, at), 0
    elif name in ":btT":
        at = _end(_LABEL, script, at)
    elif name in "qQl":
        at = _end(re.compile(r"[ \t]*\d*"), script, at)
    elif name not in _PLAIN:
        raise ValueError(f"its script has the command {name}, which may write or run something")
    follows = _NEXT.match(script, at)
    if follows is None:
        raise ValueError(f"its script has {script[at : at + 1]} behind {name}, which may write or run something")
    return follows.end(), 0


def _text_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    while end > 0 and script[end - 1] == "\\":
        if script[at:end].endswith("\\\\"):
            # One backslash escapes the other, and seds differ in how many remain.
            raise ValueError("ba can't check its script")
        end = script.find("\n", end + 1)
    return len(script) if end < 0 else end


def _delimited(script: str, at: int, mark: str) -> int:
    """Return the index after the next unescaped ``mark``. A ``mark`` in brackets is a problem: only some seds end
    there."""
    start = at
    while script[at] != mark:
        at += 2 if script[at] == "\\" else 1
    if script.rfind("[", start, at) > script.rfind("]", start, at):
        raise ValueError("ba can't check its script")
    return at + 1


def _end(pattern: re.Pattern[str], script: str, at: int) -> int:
    found = pattern.match(script, at)
    return found.end() if found else at


_AWK = regex(r"\bsystem\b|\bgetline\b|@|\bARGV\b|\bENVIRON\b|\bPROCINFO\b|\bSYMTAB\b|\bFUNCTAB\b|\\\n")
_TEXT = regex(r'"(?:[^"\\\n])*"')


def awk_problem(script: str) -> str:
    """Return a problem for starting programs, reading unnamed files, and writing files."""
    if found := _AWK.search(script):
        return f"its program has {found[0]}, which may run something or read other files"
    # Only print redirects output.
    printing = script[script.find("print") :] if "print" in script else ""
    if "|" in printing.replace("||", ""):
        return "its program has |, which may run something"
    if ">" not in printing:
        return ""
    if set(script) & set("/\\#") and "{" in script:
        # Ignore braces and brackets in regular expressions and comments.
        return "its program has >, which may write a file"
    braces = brackets = 0
    for char in _TEXT.sub("", script):
        braces += (char == "{") - (char == "}")
        brackets += (char == "(") - (char == ")")
        if char == ">" and braces > 0 and brackets <= 0:
            return "its program has >, which may write a file"
    return ""


_JQ = regex(r"\benv\b|\$ENV|\$__prog|\binclude\b|\bimport\b|\bstrenv\b|\benvsubst\b|\bload\w*|\bsystem\b|\beval\b")


def jq_problem(script: str) -> str:
    """Return a problem for reading the environment or other files."""
    found = _JQ.search(script)
    return f"its filter has {found[0]}, which reads the environment or other files" if found else ""


def date_problem(text: str) -> str:
    return "" if text.startswith("+") else "it may set the clock"


_SECRET_KINDS = regex(r"secret|token|credential|passw|header|private", re.IGNORECASE)


def secrets_problem(text: str) -> str:
    """Return a problem for names that suggest secrets."""
    return "it may print secrets" if _SECRET_KINDS.search(text) else ""


def gh_problem(path: str) -> str:
    """Return a problem unless the path is a query to the machine that ``gh`` is configured for."""
    return (
        "" if "://" not in path and path.strip("/") != "graphql" else "it may change something or reach another machine"
    )


def setting_problem(name: str) -> str:
    return f"{name} sets a value" if "=" in name else ""


def ps_problem(texts: str) -> str:
    """Return a problem for letters, or values of options (after a dash), that show environments."""
    shown = any("environ" in text if text.startswith("-") else "e" in text for text in texts.split("\n"))
    return "it would show the environments of programs" if shown else ""


def graphql_problem(texts: str) -> str:
    """Return a problem unless the document can only query."""
    return "it may change something" if re.search(r"mutation|subscription", texts, re.IGNORECASE) else ""


_BINDINGS = regex(r"(?:(?:^|[,\n])[^:,\n]+:[a-z/-]+(?:\+[a-z/-]+)*)+")


def fzf_problem(texts: str) -> str:
    """Return a problem unless the key bindings have only actions without arguments."""
    return "" if _BINDINGS.fullmatch(texts) else "its keys may run something"


OPEN_VARIABLES = frozenset(
    {"HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "HOSTNAME", "SHLVL", "UID", "EUID", "RANDOM",
     "SECONDS", "EPOCHSECONDS", "BASHPID", "OPTIND", "LINENO", "PPID", "TERM", "COLUMNS", "LINES", "TZ", "BASH_VERSION",
     "OSTYPE", "HOSTTYPE", "EDITOR", "VIRTUAL_ENV", "CONDA_PREFIX", "REPLY", "LC_ALL", "TMPDIR", "DISPLAY",
     "PYTHONPATH", "PYTHONHOME", "JAVA_HOME", "GOPATH", "GOROOT", "NODE_ENV", "NODE_PATH", "CARGO_HOME",
     "LD_LIBRARY_PATH", "PAGER", "VISUAL"}
)  # fmt: skip
"""Environment variables that hold no secrets."""


_NAMES_OF_VARIABLES = frozenset({
    ("cut", "-d=", "-f1"), ("cut", "-d", "=", "-f1"), ("cut", "-d", "=", "-f", "1"), ("cut", "-f1", "-d="),
    ("wc", "-l"), ("awk", "-F=", "{print $1}"), ("sed", "s/=.*//"), ("sed", "s/=.*$//"),
})  # fmt: skip
"""Commands that reduce the output of ``env`` to names or their number."""


def shows_no_secrets(words: tuple[str, ...]) -> bool:
    """Return whether a command reduces the output of ``env`` to names, or to variables without secrets."""
    if words in _NAMES_OF_VARIABLES:
        return True
    if words[:1] != ("grep",) or len(words) > 3 or (len(words) == 3 and words[1] not in {"-i", "-E", "-w", "-c"}):
        return False
    return words[len(words) - 1].removeprefix("^").removesuffix("=").upper() in OPEN_VARIABLES | _OPEN_PARTS


_OPEN_PARTS = frozenset({"PYTHON", "NODE", "JAVA", "CONDA", "VIRTUAL", "XDG", "LC_", "PYENV", "NVM", "CARGO", "RUST"})


def variables_problem(names: str) -> str:
    shown = next((name for name in names.split("\n") if name not in OPEN_VARIABLES), "")
    return f"what is in {shown} may be a secret" if shown else ""


_DOTTED = regex(
    r"\.(?:tables|schema|fullschema|indexes|indices|databases|dbinfo|headers?|mode|width|nullvalue|separator|show|timer"
    r"|help|version|dump|columns)(?:[ \t][^\n|>]*)?"
)


def sql_problem(texts: str) -> str:
    """Return a problem for SQL that does more than read the database itself."""
    for text in texts.split("\0"):
        if _DOTTED.fullmatch(text.strip()):
            continue
        found = classify(text)
        if text.lstrip().startswith(".") or found.kinds - {"read"} or not found.kinds or found.network:
            return "it may change data, run programs or reach other files"
    return ""


def sql_files(texts: Sequence[str]) -> list[str]:
    """Return the files that SQL names besides its database."""
    return [file for text in texts for file in classify(text).files]


CHECKS: Mapping[str, Callable[[str], str]] = {
    "sed": sed_problem,
    "awk": awk_problem,
    "jq": jq_problem,
    "date": date_problem,
    "secrets": secrets_problem,
    "gh-api": gh_problem,
    "ps": ps_problem,
    "setting": setting_problem,
    "graphql": graphql_problem,
    "fzf": fzf_problem,
    "variables": variables_problem,
    "sql": sql_problem,
}


def problem_of(check: str, texts: Sequence[str]) -> str:
    """Return the problem of ``texts`` found by ``check``, joined as the program joins them; empty for none."""
    if check in _NEEDED and not texts:
        return "it reads its script from standard input, or prints everything"
    return CHECKS[check](("\0" if check == "sql" else "\n").join(texts)) if check in CHECKS and texts else ""


_NEEDED = frozenset({"sql", "variables"})
