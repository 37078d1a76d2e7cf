"""Finds secrets in text by patterns and removes them: vendor keys, private keys, passwords, tokens.

Also finds fragments of secrets in a part of a text: a line inside a private key is no secret by its pattern. Pure.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import cache
from itertools import islice, takewhile
from typing import Any, cast

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen


@frozen
class Shape:
    """The pattern of a vendor's secret, as documented for secret scanning. Publishable keys and account ids are not
    secrets.

    ``starts``: literal prefixes; ``rest``: the pattern after a prefix.
    """

    kind: str
    starts: tuple[str, ...]
    rest: re.Pattern[str]


_WORD = r"[A-Za-z0-9_-]"
_PLAIN = r"[A-Za-z0-9]"
_HEX = r"[0-9a-fA-F]"

# Lines of base64 and headers, or one line separated by spaces. In a file listing, lines may begin with numbers, names
# and marks.
_MARKS = r"(?:[ \t:|>+#*│→]|-(?!-))"
_LEAD = rf"(?:[ \t]*(?!-----)(?:(?:[\w./]|-(?!-)){{1,200}}[:-]\d{{0,7}}{_MARKS}{{0,6}}|\d{{0,7}}{_MARKS}{{1,6}}))?"
_ARMOUR = (
    rf"(?:[A-Za-z0-9+/=.\\]|[:,] ?|\r?[\r\n]{_LEAD}|-(?!-)"
    r"| (?=[A-Za-z0-9+/]{30}|[A-Za-z0-9+/]{1,64}={0,2} ?-----|-----END))*+"
)

# The first matching kind wins, so more specific kinds come first.
_TABLE: tuple[tuple[str, str, str], ...] = (
    ("Anthropic key", "sk-ant-", rf"{_WORD}{{20,250}}+"),
    ("OpenRouter key", "sk-or-", rf"{_WORD}{{20,250}}+"),
    ("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", rf"{_WORD}{{16,250}}+"),
    ("API key", "sk-", rf"(?:[A-Za-z0-9]{{1,12}}[_-])?{_PLAIN}{{20,250}}+"),
    ("Stripe key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", rf"{_PLAIN}{{16,250}}+"),
    ("Stripe webhook secret", "whsec_", r"[A-Za-z0-9+/=]{20,250}+"),
    ("AWS access key", "AKIA ASIA ABIA ACCA", rf"[A-Z0-9]{{16}}(?!{_PLAIN})"),
    ("AWS Bedrock key", "ABSK", r"[A-Za-z0-9+/]{109,300}+={0,2}"),
    ("AWS Bedrock key", "bedrock-api-key-", r"[A-Za-z0-9+/=_.-]{40,4000}+"),
    ("Google API key", "AIza", rf"{_WORD}{{35}}(?!{_WORD})"),
    ("Google OAuth token", "ya29.", rf"{_WORD}{{20,1000}}+"),
    ("Google client secret", "GOCSPX-", rf"{_WORD}{{24,60}}+"),
    ("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_PLAIN}{{30,255}}+"),
    ("GitHub token", "github_pat_", r"[A-Za-z0-9_]{22,255}+"),
    (
        "GitLab token",
        "glpat- gldt- glrt- glptt- glcbt- glsoat- glft- gloas- glimt- glagent- glffct- GR1348941",
        r"[A-Za-z0-9_.-]{16,255}+",
    ),
    ("Slack token", "xoxe.xoxb- xoxe.xoxp-", r"[A-Za-z0-9-]{10,255}+"),
    ("Slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9-]{10,255}+"),
    ("Slack webhook", "hooks.slack.com/services/", r"T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,40}+"),
    ("Slack webhook", "hooks.slack.com/workflows/ hooks.slack.com/triggers/", r"[A-Za-z0-9+/]{40,80}+"),
    ("Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/", rf"\d{{15,22}}/{_WORD}{{50,90}}+"),
    ("Discord webhook", "discord.com/api/v discordapp.com/api/v", rf"\d+/webhooks/\d{{15,22}}/{_WORD}{{50,90}}+"),
    # A user's number in base64, which begins in one of these ways, a time, and a signature.
    (
        "Discord token",
        "MD MT Mj Mz ND NT Nj Nz OD OT",
        rf"[AEIMQUYcgk]{_WORD}{{19,25}}\.{_WORD}{{6,7}}\.{_WORD}{{27,110}}+",
    ),
    ("Discord token", "mfa.", rf"{_WORD}{{80,95}}(?!{_WORD})"),
    ("Telegram token", ":A", rf"{_WORD}{{34}}(?!{_WORD})"),
    ("key of a team member", "ba-team-", rf"{_WORD}{{200,2000}}+"),
    ("npm token", "npm_", rf"{_PLAIN}{{30,60}}+"),
    ("PyPI token", "pypi-", rf"{_WORD}{{50,400}}+"),
    ("Hugging Face token", "hf_ api_org_", rf"{_PLAIN}{{30,60}}+"),
    ("1Password token", "ops_eyJ", r"[A-Za-z0-9+/]{200,2000}+={0,3}"),
    ("Adobe secret", "p8e-", rf"{_PLAIN}{{32}}(?!{_PLAIN})"),
    ("Airtable token", "pat", rf"{_PLAIN}{{14}}\.[0-9a-f]{{64}}(?!{_PLAIN})"),
    ("Artifactory token", "AKCp", rf"{_PLAIN}{{60,80}}+"),
    ("Artifactory token", "cmVmdGtu", rf"{_PLAIN}{{50,60}}+"),
    ("Brevo key", "xkeysib-", r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("Clojars token", "CLOJARS_", rf"{_PLAIN}{{60}}(?!{_PLAIN})"),
    ("Dynatrace token", "dt0c01. dt0s01. dt0s02.", rf"{_PLAIN}{{24}}\.{_PLAIN}{{64}}"),
    ("EasyPost key", "EZAK EZTK", rf"{_PLAIN}{{54}}(?!{_PLAIN})"),
    ("Fly.io token", "fo1_", rf"{_WORD}{{43}}(?!{_WORD})"),
    ("Fly.io token", "fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/]{80,4000}+={0,3}"),
    ("Frame.io token", "fio-u-", rf"{_WORD}{{64}}(?!{_WORD})"),
    ("OpenShift token", "sha256~", rf"{_WORD}{{43}}(?!{_WORD})"),
    ("Prefect key", "pnu_", rf"{_PLAIN}{{36}}(?!{_PLAIN})"),
    ("Pulumi token", "pul-", r"[0-9a-f]{40}(?![0-9a-f])"),
    ("ReadMe key", "rdme_", r"[0-9a-z]{70}"),
    ("RubyGems key", "rubygems_", r"[0-9a-f]{48}"),
    ("Sonar token", "squ_ sqp_ sqa_", r"[0-9a-f]{40}(?![0-9a-f])"),
    ("Sourcegraph token", "sgp_", rf"(?:{_HEX}{{16}}_|local_)?{_HEX}{{40}}(?!{_PLAIN})"),
    ("Tailscale key", "tskey-", rf"[a-z]{{2,12}}-{_PLAIN}{{8,24}}(?:CNTRL)?-{_PLAIN}{{20,60}}+"),
    ("Terraform token", ".atlasv1.", rf"{_WORD}{{60,70}}(?!{_WORD})"),
    ("Typeform token", "tfp_", r"[A-Za-z0-9_.=-]{40,80}+"),
    ("Twilio key", "SK", rf"[0-9a-f]{{32}}(?!{_PLAIN})"),
    ("SendGrid key", "SG.", rf"{_WORD}{{16,32}}\.{_WORD}{{16,64}}+"),
    ("Mailgun key", "key-", rf"[0-9a-f]{{32}}(?!{_PLAIN})"),
    ("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,64}+"),
    ("Groq key", "gsk_", rf"{_PLAIN}{{30,80}}+"),
    ("xAI key", "xai-", rf"{_WORD}{{40,120}}+"),
    ("NVIDIA key", "nvapi-", rf"{_WORD}{{40,120}}+"),
    ("Replicate token", "r8_", rf"{_PLAIN}{{30,60}}+"),
    ("Perplexity key", "pplx-", rf"{_PLAIN}{{32,80}}+"),
    ("Tavily key", "tvly-", rf"{_WORD}{{20,80}}+"),
    ("Databricks token", "dapi", rf"[0-9a-f]{{32}}(?:-\d)?(?!{_PLAIN})"),
    ("Vault token", "hvs. hvb. hvr.", rf"{_WORD}{{24,300}}+"),
    ("Doppler token", "dp.pt. dp.st. dp.ct.", r"[A-Za-z0-9_.-]{30,80}+"),
    ("Postman key", "PMAK-", rf"{_HEX}{{20,30}}-{_HEX}{{30,40}}+"),
    ("New Relic key", "NRAK-", r"[A-Z0-9]{24,32}+"),
    ("age key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,64}+"),
    ("Docker token", "dckr_pat_ dckr_oat_", rf"{_WORD}{{20,60}}+"),
    ("Sentry token", "sntrys_ sntryu_", r"[A-Za-z0-9_+/=]{40,400}+"),
    ("Grafana token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{30,400}+"),
    ("Figma token", "figd_", rf"{_WORD}{{30,60}}+"),
    ("Supabase key", "sbp_ sb_secret_", rf"{_WORD}{{20,80}}+"),
    ("Atlassian token", "ATATT3", r"[A-Za-z0-9_=-]{100,300}+"),
    ("Heroku key", "HRKU-", rf"{_WORD}{{30,80}}+"),
    ("Linear key", "lin_api_", rf"{_PLAIN}{{32,60}}+"),
    ("Notion token", "ntn_", rf"{_PLAIN}{{40,60}}+"),
    ("Shopify token", "shpat_ shpss_ shpca_ shppa_", rf"{_HEX}{{32}}(?!{_PLAIN})"),
    ("Square secret", "sq0csp- sq0atp-", rf"{_WORD}{{22,60}}+"),
    ("PlanetScale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", rf"{_WORD}{{30,80}}+"),
    ("JSON web token", "eyJ", rf"{_WORD}{{8,4000}}+\.eyJ{_WORD}{{5,8000}}+\.{_WORD}{{8,2000}}+"),
    ("Azure storage key", "AccountKey= SharedAccessKey=", r"[A-Za-z0-9+/]{40,90}+={1,2}"),
    ("Azure signature", "sig=", r"[A-Za-z0-9%+/=]{40,120}+"),
    ("AWS signature", "X-Amz-Signature=", rf"{_HEX}{{64}}"),
    ("PuTTY key", "Private-Lines:", r" \d+(?:\r?\n[^\n]{0,30}?[A-Za-z0-9+/=]{20,64})++"),
    (
        "encoded private key",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRV LS0tLS1CRUdJTiBQUklWQVRFIEtFW LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFW"
        " LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0 LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRV"
        " LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRV LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRV",
        r"[A-Za-z0-9+/]{12,}+(?:\s{1,40}[A-Za-z0-9+/]{40,}+)*+[A-Za-z0-9+/\s]{0,80}?={0,2}",
    ),
    ("private key", "-----BEGIN ", rf"[A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----{_ARMOUR}"),
)


@cache
def shapes() -> tuple[Shape, ...]:
    """Return all shapes, by priority."""
    return tuple(
        Shape(kind, tuple(starts.split(" ")) if kind != "private key" else (starts,), regex(rest))
        for kind, starts, rest in _TABLE
    )


LONGEST = 250
MOST_BLOBS = 200
FEW = 400
"""Characters of a text up to which its pairs of characters are looked up, which is faster than searching for a hundred
prefixes."""
LARGE = 64_000
"""Characters beyond which a search takes longer than a frame: run it off the event loop."""
_LOWER = {code: code + 32 for code in range(65, 91)}


@frozen
class Secret:
    """Characters ``start`` to ``end`` of the text are a secret of this ``kind`` (``GitHub token``). ``value``: the
    known value of which they are a piece or an encoding; empty if it was found by its pattern."""

    start: int
    end: int
    kind: str
    value: str = field(default="", repr=False)


_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "token", "api_key", "apikey", "api-key", "private_key"),
    *("privatekey", "access_key", "accesskey", "account_key", "auth_key", "client_key", "encryption_key"),
    *("signing_key", "_pass"),
)
_BLOB = regex(r"(?<![\w+/])[A-Za-z0-9+/]{16,4000}+={0,2}+")
_LOGIN_NAME = regex(r"auth[\"']?\s{0,3}[:=]\s{0,3}[\"']?$")
_LONGER = regex(r"[A-Za-z0-9_~+/.%=-]{0,4000}")
_PASSWORDS = ("passw", "passphrase", "pwd", "_pass")
_ASSIGNED = regex(
    r"(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|(?:private|access|account|auth|client|encryption"
    r"|signing)_?key|_pass)(?![a-z]{3})[A-Za-z0-9_-]{0,30}+(?:\\?[\"'\]]){0,2}"
    r"\s{0,3}(?:=>|:=|==?|:|value\s?=|>(?=[^<>\s]{6,250}</))\s{0,3}"
    r"(?:(?P<quote>\\?[\"'`])(?P<quoted>[^\"'`\s\\]{6,250}+)|(?P<bare>[A-Za-z0-9_~+/.!@#$%^*?-]{8,250}+={0,2}+)(?![(\[]))",
    re.IGNORECASE,
)
_PAGING = regex(r"(?:next|page|paging|continuation|cursor|sync|pagination|csrf|max|min|per|num)[_-]?$", re.IGNORECASE)
_FLAGGED = regex(
    r"(?:password|passwd|passphrase|secret|token|api-?key|(?:private|access|account|auth|client)-?key|pass)"
    r"[ \t]+(?:(?P<quote>[\"'])(?P<quoted>[^\"'\s]{6,250}+)|(?P<bare>[A-Za-z0-9_~+/.!@#$%^*?=-]{8,250}+))",
    re.IGNORECASE,
)
_BEARER = regex(r"(?:bearer|basic|token)[ \t]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{16,2000}+)", re.IGNORECASE)
_LOGIN = regex(
    r"://(?:(?P<user>[^\s:/@?#\"'<>`]{0,200}+):(?P<password>[^\s/@\"'<>`]{1,250}+)"
    r"|(?P<token>[A-Za-z0-9_-]{20,250}+))@(?=[\w\[$])"
)
_PLACEHOLDER = regex(
    r"example|placeholder|change[_-]?me|redacted|sample|dummy|x{5,}|\*{3}|\.{3}|…|[<>]|\$[({A-Z_]|\{\{|%\(|#\{"
    r"|^\$\w+$|^%\w+%$|^\{\w+\}$|\[secret: "
    r"|(?<![a-z])(?:your|yours|my|the|some|fake|test|demo|foo|insert|replace|todo|mock|stub|invalid)(?![a-z])",
    re.IGNORECASE,
)
_REFERENCE = regex(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+|[A-Za-z]+|[a-z]+(?:[_-][a-z]+)+|[A-Z]+(?:_[A-Z]+)+|[/.~][\w./-]*"
)
_COOKIE = regex(r"[ ;]([\w.-]{1,80}+)=(?P<value>[A-Za-z0-9._~+/%=-]{24,4000}+)")
_UUID = regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def find(text: str) -> tuple[Secret, ...]:
    """Return the secrets in ``text``, in order, none inside another. Takes time in proportion to the length of the
    text."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = text.translate(_LOWER)
    found = [*_of_vendors(text), *_in_addresses(text), *_in_headers(text, lower), *_assigned(text, lower)]
    found += _encoded(text)
    return tuple(_apart(found))


def redact(text: str, hidden: str = "[secret: {kind}]") -> str:
    """Return ``text`` with ``hidden`` in place of every secret."""
    return without(text, find(text), hidden)


def without(text: str, secrets: tuple[Secret, ...], hidden: str = "[secret: {kind}]") -> str:
    """Return ``text`` with the given secrets removed."""
    parts: list[str] = []
    last = 0
    for secret in secrets:
        parts += (text[last : secret.start], hidden.replace("{kind}", secret.kind))
        last = secret.end
    return "".join((*parts, text[last:])) if parts else text


def redact_value(value: Any) -> Any:
    """Return a JSON value with its strings redacted; a field's name counts as the text before its value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _field(str(key), item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [redact_value(item) for item in cast("list[Any]", value)]
    return value


def _field(key: str, value: Any) -> Any:
    if isinstance(value, str) and len(value) <= LONGEST:
        head = f'{key}="'
        if any(
            secret.start == len(head) and secret.end == len(head) + len(value) for secret in find(f'{head}{value}"')
        ):
            return "[secret: value]"
    return redact_value(value)


def placeholders(text: str) -> tuple[str, ...]:
    """Return the marks that ``redact`` left in ``text``."""
    if "[secret: " not in text:
        return ()
    kinds = "|".join(sorted({re.escape(shape.kind) for shape in shapes()} | set(_KINDS)))
    return tuple(dict.fromkeys(re.findall(rf"\[secret: (?:{kinds})\]", text)))


_KINDS = ("encoded secret", "password", "token", "password in an address", "token in an address", "value")


def _apart(found: list[Secret]) -> Iterator[Secret]:
    end = -1
    for secret in sorted(found, key=lambda secret: (secret.start, -secret.end)):
        if secret.start >= end:
            yield secret
            end = secret.end


def _places(text: str, start: str) -> Sequence[int]:
    # Most texts contain almost none of the hundred prefixes, so a miss must be cheap.
    at = text.find(start)
    if at < 0:
        return ()
    places: list[int] = []
    while at >= 0:
        places.append(at)
        at = text.find(start, at + len(start))
    return places


@cache
def _beginnings() -> tuple[tuple[str, str, Shape], ...]:
    return tuple((start[:2], start, shape) for shape in shapes() for start in shape.starts)


@cache
def _pairs() -> frozenset[str]:
    return frozenset(pair for pair, _, _ in _beginnings())


def _possible(text: str) -> Iterable[tuple[str, Shape]]:
    """Return the prefixes that ``text`` may contain, by priority."""
    if len(text) > FEW:
        return ((start, shape) for _, start, shape in _beginnings())
    pairs = set(map(str.__add__, text, text[1:]))
    if _pairs().isdisjoint(pairs):
        return ()
    return ((start, shape) for pair, start, shape in _beginnings() if pair in pairs)


def _of_vendors(text: str) -> Iterator[Secret]:
    for start, shape in _possible(text):
        for at in _places(text, start):
            if start[0].isalnum() and at and (text[at - 1].isalnum() or text[at - 1] == "_"):
                continue
            if match := shape.rest.match(text, at + len(start)):
                if special := _SPECIAL.get(shape.kind):
                    yield from special(text, at, match)
                elif _real(match[0]):
                    yield Secret(at, match.end(), shape.kind)


def _private_key(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """Yield a private key with its last line, if present; a truncated key counts too."""
    body = re.sub(r"[\r\n][ \t>|+]+", "\n", match[0].partition("-----")[2])
    if sum(character.isalnum() for character in body) < 40 or _PLACEHOLDER.search(body):
        return
    # A trailing backslash belongs to the following character, such as an escaped quote.
    end = at + len(text[at : match.end()].rstrip("\\"))
    if text.startswith("-----END", end) and (close := text.find("-----", end + 8, end + 80)) >= 0:
        end = close + 5
    yield Secret(at, end, "private key")


def _telegram(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """Yield a Telegram token with the preceding number of the bot."""
    start = at
    while start > max(0, at - 17) and text[start - 1].isdecimal():
        start -= 1
    if 5 <= at - start <= 16 and (match[0].startswith("A") or looks_drawn(match[0])) and _real(match[0]):
        yield Secret(start, match.end(), "Telegram token")


def _discord(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """Yield a Discord token. Its first part encodes a user's number; with two-factor login it has none."""
    number = text[at : match.end()].partition(".")[0]
    try:
        said = base64.urlsafe_b64decode(number + "=" * (-len(number) % 4))
    except ValueError:
        said = b""
    if number == "mfa" or (said.isdigit() and 17 <= len(said) <= 20):
        yield Secret(at, match.end(), "Discord token")


def _terraform(text: str, at: int, match: re.Match[str]) -> Iterator[Secret]:
    """Yield a Terraform token with its fourteen preceding characters."""
    if at >= 14 and text[at - 14 : at].isalnum():
        yield Secret(at - 14, match.end(), "Terraform token")


_SPECIAL = {
    "private key": _private_key,
    "Telegram token": _telegram,
    "Discord token": _discord,
    "Terraform token": _terraform,
}
"""Kinds whose surrounding text must confirm them."""


def _in_addresses(text: str) -> Iterator[Secret]:
    for at in _places(text, "://"):
        match = _LOGIN.match(text, at)
        if match is None:
            continue
        if token := match["token"]:
            if _real(token) and looks_drawn(token):
                yield Secret(match.start("token"), match.end("token"), "token in an address")
            continue
        password, user = match["password"], match["user"]
        common = {user.lower(), "password", "pass", "passwd", "pwd", "secret", "user", "pw", "port", "token", "key"}
        if password.lower() not in common and not _PLACEHOLDER.search(password) and len(set(password)) > 1:
            yield Secret(match.start("password"), match.end("password"), "password in an address")


def _in_headers(text: str, lower: str) -> Iterator[Secret]:
    for word in ("bearer", "basic", "token "):
        for at in _places(lower, word):
            match = _BEARER.match(text, at)
            if word == "token " and "authorization" not in lower[max(0, at - 24) : at]:
                continue
            if match and _real(match["value"]) and looks_drawn(match["value"]):
                yield Secret(match.start("value"), match.end("value"), "token")
    end = 0
    for at in _places(lower, "cookie:"):
        if at < end:
            continue
        end = text.find("\n", at, at + 8_000)
        end = end if end >= 0 else at + 8_000
        for match in _COOKIE.finditer(text, at, end):
            if _real(match["value"]) and looks_drawn(match["value"]):
                yield Secret(match.start("value"), match.end("value"), "token")


def _assigned(text: str, lower: str) -> Iterator[Secret]:
    for word in _WORDS:
        for at in _places(lower, word):
            option = text[max(0, at - 24) : at].rpartition(" ")[2].startswith("--")
            match = _ASSIGNED.match(text, at) or (_FLAGGED.match(text, at) if option else None)
            if match is None or (word in {"token", "secret"} and _PAGING.search(text, max(0, at - 16), at)):
                continue
            group = "quoted" if match["quoted"] else "bare"
            value, start = match[group], match.start(group)
            if _UUID.fullmatch(value) or not _real(value):
                continue
            if word.startswith(_PASSWORDS):
                if _password(value, quoted=group == "quoted"):
                    yield Secret(start, _end(text, match, group), "password")
            elif looks_drawn(value) and not _REFERENCE.fullmatch(value):
                yield Secret(start, _end(text, match, group), "token")


def _end(text: str, match: re.Match[str], group: str) -> int:
    """Return where a value ends, which may be longer than its match."""
    end = match.end(group)
    more = _LONGER.match(text, end) if end - match.start(group) >= LONGEST else None
    return more.end() if more else end


def _encoded(text: str) -> Iterator[Secret]:
    """Yield secrets in base64: logins as ``user:password``, and values that match a pattern."""
    for match in islice(_BLOB.finditer(text), MOST_BLOBS):
        blob = match[0]
        try:
            words = base64.b64decode(blob + "=" * (-len(blob) % 4)).decode("ascii")
        except ValueError:
            continue
        if not words.isprintable() and not words.replace("\n", "").isprintable():
            continue
        login = len(words.partition(":")[2]) > 3 and _LOGIN_NAME.search(text, max(0, match.start() - 16), match.start())
        if login or any(True for _ in _of_vendors(words)):
            yield Secret(match.start(), match.end(), "encoded secret")


def _password(value: str, *, quoted: bool) -> bool:
    """Return whether a value may be a chosen password, and is no word, name or path of a program."""
    if len(value) < 8 and not (quoted and any(letter.isdigit() for letter in value)):
        return False
    if _REFERENCE.fullmatch(value) and not (quoted and any(letter.isdigit() for letter in value)):
        return False
    return any(not letter.isalpha() for letter in value) and len(set(value)) > 3


def _real(value: str) -> bool:
    """Return whether ``value`` is no placeholder such as ``sk-xxxx`` or ``<your key>``."""
    return len(set(value)) >= min(6, len(value) // 3 + 3) and not _PLACEHOLDER.search(value)


def looks_drawn(value: str) -> bool:
    """Return whether a value looks random: long enough, with digits, its characters spread evenly."""
    if len(value) < 16 or not any(letter.isdigit() for letter in value) or value.isdigit():
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy >= 3.0


AROUND = 64_000
"""Characters before and after a part in which a secret may begin and end."""
NEAR = 400
"""The same in lines."""
LEAST = 6
"""Minimum characters of a secret that reveal something."""
_LONG = regex(r"PRIVATE KEY|Private-Lines|LS0tLS1CRUdJTiB")
_KEY_EDGE = regex(r"-----[A-Z ]{1,60}-----")
"""The first and last line of a key, which reveal nothing."""


def has_long_secrets(text: str) -> bool:
    """Return whether ``text`` may contain secrets of several lines, which only few kinds are."""
    return bool(_LONG.search(text))


def without_fragments(part: str, whole: str) -> tuple[str, tuple[str, ...]]:
    """Return ``part`` of ``whole`` with fragments of secrets replaced by marks, and the kinds of these secrets.

    Secrets that are completely in the part are left to the caller.
    """
    kinds: dict[str, None] = {}
    for secret in find(whole):
        text = whole[secret.start : secret.end]
        if text in part:
            continue
        for piece in _pieces(text, part):
            part = part.replace(piece, f"[secret: {secret.kind}]")
            kinds[secret.kind] = None
    return part, tuple(kinds)


def lines_without_fragments(lines: Sequence[str], whole: str) -> tuple[list[str], tuple[str, ...]]:
    """Return consecutive lines without fragments, as ``without_fragments``; their number stays the same."""
    text, kinds = without_fragments("\n".join(lines), whole)
    return (text.split("\n") if kinds else list(lines)), kinds


def _pieces(secret: str, part: str) -> Sequence[str]:
    """Return the pieces of ``secret``'s lines in ``part``: whole lines, and lines cut at one or both ends."""
    lines = [line for each in secret.splitlines() if (line := each.strip()) and not _KEY_EDGE.fullmatch(line)]
    body = "\n".join(lines)
    found = [line for each in part.splitlines() if len(line := each.strip()) >= LEAST and line in body]
    for line in lines:
        if line in part:
            found += [line] if len(line) >= LEAST else []
            continue
        for piece in (_begun(line, part), _begun(line[::-1], part[::-1])[::-1]):
            found += [piece] if len(piece) >= LEAST else []
    return sorted(found, key=len, reverse=True)


def _begun(line: str, part: str) -> str:
    """Return the longest beginning of ``line`` that occurs in ``part``."""
    at, longest = part.find(line[:LEAST]), 0
    while at >= 0 and line:
        alike = takewhile(lambda letters: letters[0] == letters[1], zip(line, part[at:], strict=False))
        longest = max(longest, sum(1 for _ in alike))
        at = part.find(line[:LEAST], at + 1)
    return line[:longest]
