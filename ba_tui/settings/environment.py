"""Settings from the process's environment variables and from ``.env`` in the state folder, never in the working folder.

``layers`` ranks these values against files and flags. The functions at the end tell by a variable's name whether it
contains a secret or affects how programs start.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from ba_tui.core.errors import StorageError
from ba_tui.core.text.patterns import regex
from ba_tui.resources import UserFolders, read_regular
from ba_tui.settings.model import Settings

PREFIX = "BA_"
OTHERS = ("BA_CONFINED", "BA_HOME", "BA_INPUT_TIMEOUT", "BA_TEAM_SECRET", "BA_TEAM_TOKEN")
"""Variables with the prefix that are not settings."""

PLAIN = frozenset(
    each.name for each in fields(Settings) if each.default is None or isinstance(each.default, str | int | float)
)
"""Settings whose variable has the plain value; lists and groups need parsing."""
GROUPS = frozenset(each.name for each in fields(Settings)) - PLAIN

STANDARD = {
    "ANTHROPIC_BASE_URL": ("providers", "anthropic", "base_url"),
    "OPENAI_BASE_URL": ("providers", "openai", "base_url"),
}
"""Variables of the vendors' SDKs, and the setting of each."""


def dotenv(places: UserFolders) -> dict[str, str]:
    """Return the variables of the ``.env`` in the state folder.

    Raises:
        StorageError: the file exists but can't be read.
    """
    try:
        text = read_regular(places.dotenv, 1_000_000).decode("utf-8-sig", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise StorageError(
            f"{places.dotenv} can't be read: {error.strerror or error}.", "Check its permissions."
        ) from error
    from dotenv import dotenv_values  # noqa: PLC0415 - hardly anybody has this file

    values = dotenv_values(stream=io.StringIO(text), interpolate=False)
    return {name: value for name, value in values.items() if value is not None}


def variables(places: UserFolders, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the process's variables, over those of the state folder's ``.env`` if it can be read."""
    process = os.environ if env is None else env
    try:
        return {**dotenv(places), **process}
    except StorageError:
        return dict(process)


class EnvironmentLayer:
    """The settings in a mapping of variables: ``BA_*`` and the vendors' own."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._given = env

    def data(self) -> dict[str, Any]:
        """Return the settings as nested data."""
        found: dict[str, Any] = {name: value for name, value in self._named() if name in PLAIN and value}
        if any(name.split("__")[0] in GROUPS for name, _ in self._named()):
            from ba_tui.settings.prefixed import read_prefixed  # noqa: PLC0415 - 60 ms that few starts need

            found |= read_prefixed(self._given, PREFIX)
        for name, (group, entry, key) in STANDARD.items():
            if value := self._given.get(name, "").strip():
                found.setdefault(group, {}).setdefault(entry, {}).setdefault(key, value)
        return found

    def _named(self) -> Iterator[tuple[str, str]]:
        """Yield the names of settings and the values of variables with ba's prefix."""
        for name, value in self._given.items():
            if name.upper().startswith(PREFIX) and name not in OTHERS:
                yield name[len(PREFIX) :].lower(), value

    def name(self, path: tuple[str | int, ...]) -> str:
        """Return the variable that sets ``path``."""
        given = {name.upper() for name in self._given}
        for length in range(len(path), 0, -1):
            name = PREFIX + "__".join(str(part) for part in path[:length]).upper()
            if name in given:
                return name
        return next((name for name, target in STANDARD.items() if target == path[:3]), "environment")


_KEYS = regex(
    r"(?:ANTHROPIC|CLAUDE\w*|OPENAI|AZURE_OPENAI|AZURE_AI|GEMINI|MISTRAL|DEEPSEEK|DASHSCOPE|QWEN|ZHIPU\w*|ZAI|GLM|BIGMODEL"
    r"|MOONSHOT|KIMI|MINIMAX|GROQ|XAI|OPENROUTER|TOGETHER\w*|FIREWORKS|COHERE|CO|PERPLEXITY|PPLX|CEREBRAS|REPLICATE"
    r"|HUGGINGFACE\w*|HF|VOYAGE|AI21|SILICONFLOW|VOLC\w*|ARK|LITELLM|OLLAMA|BA)"
    r"(?:_\w+)?_(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD)(?:_\w+)?"
    r"|(?:GOOGLE|VERTEX|NVIDIA|AZURE)(?:_\w+)?_API_?KEY(?:_\w+)?"
    # Addresses of servers hold passwords.
    r"|AWS_BEARER_TOKEN_BEDROCK|BA_\w+_URL",
    re.IGNORECASE,
)
_SECRETS = regex(
    r"(?:\w+_)?(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|PRIVATE_?KEY|SECRET|PASSPHRASE"
    r"|CREDENTIALS_JSON)(?:_ID|_\d+)?"
    r"|\w*(?:TOKEN|PASSWORD|PASSWD|_PAT)(?:_\d+)?"
    r"|(?:AWS|ALIYUN|TENCENTCLOUD|ALICLOUD|ALIBABA_CLOUD|HUAWEICLOUD)_\w*(?:KEY|TOKEN|SECRET)\w*",
    re.IGNORECASE,
)
_STEERING = regex(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS4|BASH_FUNC_.*|CDPATH|GLOBIGNORE|POSIXLY_CORRECT"
    r"|GREP_OPTIONS|RIPGREP_CONFIG_PATH"
)
_LAUNCHING = regex(
    # Search paths of programs, code that they load first, and servers that they send data to.
    r"PATH|HOME|SHELL|USER|LOGNAME|PWD|OLDPWD|IFS|TMPDIR|TEMP|TMP|EDITOR|VISUAL|PAGER|BROWSER|MANPAGER|LESSOPEN|LESSCLOSE"
    r"|CLASSPATH|(?:_?JAVA|JDK|_JAVA)\w*OPTIONS|CC|CXX|CPP|LD|AR|AS|NM|RANLIB|FC|[A-Z]*FLAGS|RUSTC\w*|GO[A-Z]+|CGO_\w+"
    r"|(?:LD|DYLD|GIT|SSH|PERL5?|RUBY|PIP|UV|NPM_CONFIG|YARN|BUNDLE|GEM|CARGO|COREPACK|DOCKER|NIX|XDG)_?\w*"
    r"|PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|USERBASE|EXECUTABLE|INSPECT|WARNINGS|PYCACHEPREFIX|PLATLIBDIR|CASEOK)"
    r"|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|REPL_EXTERNAL_MODULE|TLS_REJECT_UNAUTHORIZED|V8_COVERAGE)|\w*_PROXY"
    r"|TERM\w*|\w*(?:PRELOAD|ASKPASS)\w*|BA_\w*|ZDOTDIR|FPATH|INPUTRC|MAKEFLAGS|MFLAGS|MAKEFILES|OPENSSL_\w+|SSL_\w+"
    r"|CURL_\w+|REQUESTS_\w+|AWS_\w+|KUBECONFIG|GOOGLE_\w+|AZURE_\w+",
    re.IGNORECASE,
)


_LEADING = regex(
    r"\w*_(?:URL|URI|HOST|HOSTS|HOSTNAME|ENDPOINT|ADDR|ADDRESS|DSN|SERVER|SERVERS|REGISTRY|MIRROR|INDEX|REMOTE|PORT|BROKER)",
    re.IGNORECASE,
)


def leads(name: str) -> bool:
    """Return whether ``name`` may say where programs connect to."""
    return bool(_LEADING.fullmatch(name))


def holds_key(name: str) -> bool:
    """Return whether the variable ``name`` contains a key, a token or a password."""
    return bool(_KEYS.fullmatch(name) or _SECRETS.fullmatch(name))


def steers(name: str) -> bool:
    """Return whether ``name`` makes bash run code first, or parse a command differently than ba's policy does."""
    return bool(_STEERING.fullmatch(name))


def starts(name: str) -> bool:
    """Return whether ``name`` may change which programs start, what they load first, or where they send data."""
    return steers(name) or bool(_LAUNCHING.fullmatch(name))
