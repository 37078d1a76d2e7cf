"""Which hosts a call may contact, as far as its arguments tell: in addresses, and as words of commands that reach out.

Pure. Which of them the user has named is decided in ``detection``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from ba_tui.core.text.patterns import regex
from ba_tui.permissions.egress.homographs import addresses

UNREADABLE = "a host that can't be told"
_LOOKED_AT = 20_000
_DEEPEST = 10
_PARTS = regex(r"\n|;|&&|\|\|")
_VARIABLE = regex(r"\$\{[^}]*\}|\$\w+")
_PROGRAM = regex(
    r"(?:^|[\s/(\"'])(curl|wget|aria2c|https?|xh|ssh|scp|sftp|rsync|ftp|lftp|telnet|nc|ncat|netcat|socat|dig|drill|kdig"
    r"|nslookup|host|getent|ping6?|traceroute|tracepath|mtr|whois|openssl|resolvectl|systemd-resolve|websocat|mosh|git)"
    r"(?=\s|$)([\s\S]*)",
    re.IGNORECASE | re.DOTALL,
)
_LOOK_UPS = frozenset((
    *("ssh", "sftp", "telnet", "nc", "ncat", "netcat", "dig", "drill", "kdig", "nslookup", "host", "ping", "ping6"),
    *("traceroute", "tracepath", "mtr", "whois", "mosh"),
))  # fmt: skip
"""Programs whose words are hosts, and hardly ever files."""
_GIT_WORD = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])++"
_KEYS = r"(?:user\.(?:name|email)|commit\.gpgsign|color\.\w+|advice\.\w+|core\.quotepath)"
_LOCAL_GIT = regex(
    rf"(?:\s+(?:-c\s+(?:{_KEYS}={_GIT_WORD}|'{_KEYS}=[^']*'|\"{_KEYS}=[^\"]*\")"
    rf"|-C\s+{_GIT_WORD}|--no-pager|-P))*"
    r"\s+(?:add|blame|branch|cat-file|checkout|cherry-pick|clean|commit|config|describe|diff|for-each-ref|grep|init|log"
    r"|ls-files|ls-tree|merge|merge-base|mv|notes|reflog|reset|restore|rev-list|rev-parse|revert|rm|shortlog|show|stash"
    r"|status|switch|tag|worktree)(?=\s|$)"
)
"""Git calls that reach no host: what looks like one is part of a message, a key, a tag or a path."""
_DOMAIN = regex(r"(?:(?<![\w/.-])|(?<=[)`}]\.))(?:[A-Za-z0-9_-]+\.)+[A-Za-z][A-Za-z0-9-]{1,23}(?![\w-])\.?")
_NUMBER = regex(r"(?<![\w./-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")
_FILE = regex(
    r"\.(?:py|js|ts|json|ya?ml|toml|txt|md|csv|tsv|html?|xml|sh|log|conf|cfg|ini|lock|tar|gz|tgz|bz2|xz|zip|7z|whl|parquet"
    r"|xlsx?|pdf|png|jpe?g|svg|gif|sql|db|sqlite|pem|crt|key|bak|tmp|out|bin|so|deb|rpm|iso|git|patch|diff|rs|go|java|c|h"
    r"|cpp|rb|pl|php)$",
    re.IGNORECASE,
)
_WORD = regex(r"[^\s\"']+")
_PLACE_KEYS = regex(
    r"(?:^|_)(?:host|hostname|domain|server|url|uri|endpoint|address|site|link|webhook|target|to)s?$", re.IGNORECASE
)
_BARE = regex(r"(?:[\w-]+\.)+[A-Za-z]{2,24}(?::\d+)?(?:/\S*)?")
_DEVICE = regex(r"/dev/(?:tcp|udp)/([\w.-]+)/")
"""Bash opens a connection where such a path is read or written."""
_CODE = regex(
    r"\b(?:socket|getaddrinfo|gethostby\w+|requests|httpx|aiohttp|urllib3?|http\.client|smtplib|ftplib|paramiko|dns"
    r"|inet_aton|https?\.(?:get|request)|fetch(?=\()|TCPSocket|Net::HTTP|fsockopen|file_get_contents)\b"
)
_INTERPRETER = regex(r"(?:^|[\s/;&|(])(?:python[\d.]*|node|deno|bun|ruby|perl|php|lua)\s")
_CALLED = regex(r"\s*[(,:;]|\s+import\b")


def hosts_of(text: str) -> Iterator[str]:
    """The hosts of the addresses in ``text``; UNREADABLE for an address that can't be read."""
    for address in addresses(text):
        try:
            yield (urlsplit(address).hostname or UNREADABLE).lower()
        except ValueError:
            yield UNREADABLE


def hosts_of_command(command: str) -> Iterator[str]:
    """The hosts that programs of a shell command are given, also without an address around them."""
    for part in _PARTS.split(_VARIABLE.sub("X", command[:_LOOKED_AT])):
        yield from (host for host in _DEVICE.findall(part) if host)
        found = _PROGRAM.search(part)
        while found and found[1].lower() == "git" and (local := _LOCAL_GIT.match(found[2])):
            # What it says is no host; what it pipes to or starts may reach one.
            part = found[2][local.end() :]
            found = _PROGRAM.search(part)
        if found:
            yield from _of_words(found[1].lower(), found[2], part)


def hosts_of_code(code: str) -> Iterator[str]:
    """The hosts in Python code that uses the network or starts programs."""
    yield from hosts_of(code[:_LOOKED_AT])
    if _CODE.search(code):
        yield from _of_code(code[:_LOOKED_AT])
    yield from hosts_of_command(code)


def hosts_of_inline_code(command: str) -> Iterator[str]:
    """The hosts in code that a shell command gives to an interpreter."""
    text = command[:_LOOKED_AT]
    if _INTERPRETER.search(text) and _CODE.search(text):
        yield from (each for each in _of_code(text) if not _FILE.search(each))


def hosts_of_values(args: Mapping[str, Any]) -> Iterator[str]:
    """The hosts in the arguments of somebody else's tool: addresses anywhere, and names where one is meant."""
    for key, text in _texts(args, ""):
        yield from hosts_of(text)
        if _PLACE_KEYS.search(key) and _BARE.fullmatch(text.strip()) and not _FILE.search(text.strip()):
            yield re.split("[:/]", text.strip())[0].lower()


def _of_words(program: str, rest: str, part: str) -> Iterator[str]:
    known: list[str] = [each for each in hosts_of(part) if each != UNREADABLE]
    names = _domains(rest) if program in _LOOK_UPS else (each for each in _domains(rest) if not _FILE.search(each))
    known += (each.lower().rstrip(".") for each in names)
    known += _NUMBER.findall(rest)
    if not known and program in _LOOK_UPS:
        words = [word for word in _WORD.findall(rest) if not word.startswith(("-", "+", ">", "<", "@"))]
        first = words[0].rpartition("@")[2].partition(":")[0].lower() if words else ""
        known = [first if re.fullmatch(r"[\w.-]+", first) else UNREADABLE] if first else []
    yield from dict.fromkeys(known)


def _of_code(code: str) -> Iterator[str]:
    """A name that is called or imported says only that some host is reached."""
    names, called = list[str](), False
    for match in _DOMAIN.finditer(code):
        if _CALLED.match(code, match.end()):
            called = True
        else:
            names.append(match[0].lower().rstrip("."))
    yield from names
    if called:
        yield UNREADABLE


def _domains(text: str) -> Sequence[str]:
    return _DOMAIN.findall(text)


def _texts(value: Any, key: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text in the arguments, with the name of its field."""
    if isinstance(value, str):
        yield key, value[:_LOOKED_AT]
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for name, item in cast("Mapping[Any, Any]", value).items():
            yield from _texts(item, str(name), depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for item in cast("Sequence[Any]", value):
            yield from _texts(item, key, depth + 1)
