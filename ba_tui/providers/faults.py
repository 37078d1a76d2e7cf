"""Errors of requests to models, in ba's words and with a hint; all vendors' modules share them.

Texts of a server are quoted in one short line without anything that looks like a key.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any
from urllib.parse import urlsplit

from ba_tui.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContextOverflow,
    ModelNotFound,
    ProviderError,
    RateLimited,
    RequestRefused,
    ServerOverloaded,
    TransientError,
    UsageError,
)
from ba_tui.core.messages import clean_text
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line, sentence
from ba_tui.core.values import frozen
from ba_tui.providers.shapes import decode, fields, items, text_of

LONGEST = 300
READ = 4_000
"""Characters of a server's text that are read."""
DIRECT = "Set base_url to the final address."
PROXY = "Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."
_HOME_NET = regex(r"127(?:\.\d{1,3}){3}")
_KEY = regex(r"\b(?:sk|pk|gsk|xai|key)[-_][\w.*\-]{6,}|\bBearer\s+\S{6,}|\bAIza[\w\-]{10,}")
_TOO_LONG = regex(
    r"(?:prompt|input|request|query|conversation|messages?)(?: tokens?| length| size)? (?:is|are) too (?:long|large)"
    r"|(?:prompt|input) (?:too long|exceeds|exceeded)|too long for (?:the|this|requested) model|too large for model"
    r"|maximum context length|maximum (?:model|prompt|input) length|context[_ ]length|context[_ ]window|context[_ ]size"
    r"|context limit|exceeds? the (?:maximum number of (?:input )?tokens|model'?s? (?:maximum|limit))"
    r"|input token count|exceeded model token limit|range of input length"
    r"|reduce the length of the (?:messages|prompt|input)|too many (?:input )?tokens|token limit exceeded"
    r"|tokens? .{0,40}exceeds? .{0,40}(?:limit|maximum)|string_above_max_length|request_too_large",
    re.IGNORECASE,
)
_MEDIA = regex(
    r"\b(?:images?|pictures?|photos?|pdfs?|documents?|attachments?|vision|multi-?modal|mime|mmproj)\b"
    r"|image_|media[_ ]?type|input_file|file_data|base64|content must be a string",
    re.IGNORECASE,
)
_MOST_MEDIA = regex(
    r"(?:at most|up to|more than|maximum (?:number )?(?:of|is)|limit(?:ed)? (?:of|to|is)|max(?:imum)?) (\d{1,4}) "
    r"(?:images?|pictures?|documents?|files?|pdfs?\b(?! pages))"
    r"|too (?:many|much) (?:images|media)[^.]{0,60}> (\d{1,4})",
    re.IGNORECASE,
)
_BLIND = regex(r"n[o']t support|unsupported|no endpoints found|missing data required|mmproj|not a multi", re.IGNORECASE)
"""Words of servers that answer with 404 or 5xx when a model takes no pictures."""
_PLACE = regex(
    r"messages?(?:\.|\[)(\d{1,6})\]?(?:\.content(?:\.|\[)(\d{1,6}))?(?:\]?\.[a-z_]+\.content(?:\.|\[)(\d{1,6}))?"
)
_NO_MONEY = regex(
    r"insufficient[_ ](?:quota|balance|credits?|funds)|credit balance|billing_error|payment required", re.IGNORECASE
)
_AGAIN = regex(r"(?:try again|retry|wait)(?: in| after)? (\d+(?:\.\d+)?) ?(ms|s|m)", re.IGNORECASE)
_TITLE = regex(r"<title[^>]*>(.{0,500}?)</title>", re.IGNORECASE | re.DOTALL)
_BY_CODE = {
    name: status
    for status, names in {
        400: "invalidrequest badrequest validation invalidargument contextlengthexceeded",
        401: "authentication unauthorized invalidapikey",
        402: "billing",
        403: "permission accessdenied permissiondenied",
        404: "notfound modelnotfound",
        413: "requesttoolarge",
        429: "ratelimit ratelimitexceeded toomanyrequests throttling resourceexhausted insufficientquota",
        500: "api server internal internalserver",
        503: "unavailable serviceunavailable",
        504: "timeout",
        529: "overloaded",
    }.items()
    for name in names.split()
}
"""Status by error code: in small letters, without separators and without ``error`` or ``exception`` at the end."""

_AUTHORITY = "If you know this server or proxy, point SSL_CERT_FILE at the certificate of its authority (PEM)."
_CLOCK = "Check the clock of this machine; if it is right, the server needs a new certificate."
_NAME = "Set base_url to the name that the certificate is for."
_CERTIFICATES = {9: _CLOCK, 10: _CLOCK, 62: _NAME, 64: _NAME}
"""Cause by OpenSSL's error number."""
_PLAIN = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE"}
_REFUSED = frozenset({
    *("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "NO_SHARED_CIPHER", "UNSAFE_LEGACY_RENEGOTIATION_DISABLED"),
    *("DH_KEY_TOO_SMALL", "EE_KEY_TOO_SMALL", "SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_BAD_CERTIFICATE"),
    *("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "TLSV1_ALERT_PROTOCOL_VERSION", "TLSV1_ALERT_INSUFFICIENT_SECURITY"),
    *("TLSV1_ALERT_UNKNOWN_CA", "TLSV1_UNRECOGNIZED_NAME", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
})  # fmt: skip


@frozen
class ModelService:
    """The service that errors name: ``variable`` holds its key, ``model`` is the name that was sent."""

    name: str
    variable: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    vendor: bool = True
    """Whether it is the vendor itself, or a cloud with the vendor's models: it knows the newest fields."""
    cure: str = ""
    """The hint when credentials are refused, where they are more than a key."""

    @property
    def host(self) -> str:
        parts = urlsplit(self.url)
        return parts.netloc.rpartition("@")[2] or self.url

    @property
    def local(self) -> bool:
        return is_loopback(self.url)

    def elsewhere(self) -> ModelService:
        """Return the same for a server other than the vendor's."""
        variable = f"{self.variable}, or the key that is set for this provider"
        return replace(self, name=self.host, variable=variable, vendor=False)

    def masked(self, text: str) -> str:
        """Return a server's text on one line: short, and without keys."""
        text = clean_text(text)
        if self.key:
            text = text.replace(self.key, "…")
        return one_line(_KEY.sub("…", text), LONGEST)

    def quote(self, text: str) -> str:
        """Return the same as a sentence in quotation marks, apart from ba's own text."""
        return f"“{sentence(self.masked(text))}”"


def is_loopback(url: str) -> bool:
    host = (urlsplit(url).hostname or "").lower()
    names = {"localhost", "::1", "0.0.0.0"}  # noqa: S104 - compared, never bound
    return host in names or bool(_HOME_NET.fullmatch(host)) or host.endswith(".localhost")


def check_url(url: str) -> None:
    """Raise UsageError when ``url`` can't be an endpoint."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"base_url {url!r} is not a web address.", "Write it as https://HOST/PATH or http://HOST:PORT."
        )


def check_key(key: str, variable: str) -> None:
    """Raise AuthFailed when ``key`` can't be sent; the error does not quote it."""
    if not key.isascii() or not key.isprintable() or " " in key.strip():
        raise AuthFailed("The API key contains invalid characters.", f"Copy it again into {variable}.")


def from_response(service: ModelService, status: int, headers: Mapping[str, str], body: object) -> ProviderError:
    """Return the error for a failure status. ``body`` is JSON or text, as it was received."""
    code, text = _said(body)
    return _by_status(service, status, code, text, _retry_after(headers, text))


def from_event(service: ModelService, error: object, otherwise: int = 500) -> ProviderError:
    """Return the error for an error object within a stream; ``otherwise`` is its status when it has none."""
    code, text = _said(error)
    found = fields(error)
    inner = fields(found.get("error")) or found
    if "tool_use_failed" in code:
        return TransientError(
            f"{service.name} discarded a malformed tool call of the model.", "Send the request again."
        )
    told = (inner.get(key) for key in ("status_code", "code", "status"))
    # Servers also have error numbers of their own; only those of HTTP are a status.
    number = next((int(str(value)) for value in told if re.fullmatch("[45][0-9][0-9]", str(value))), None)
    names = (re.sub(r"[^a-z0-9]", "", part.lower()).removesuffix("error") for part in code.split())
    names = (name.removesuffix("exception") for name in names)
    status = number or next((_BY_CODE[name] for name in names if name in _BY_CODE), otherwise)
    return _by_status(service, status, code, text, _retry_after({}, text))


def no_answer(service: ModelService, body: Mapping[str, Any], what: str) -> ProviderError:
    """Return the error for a success status with JSON that is no answer. ``what`` is the expected format."""
    if body.get("error"):
        return from_event(service, body)
    _, text = _said(body)
    if text:
        return from_event(service, body, otherwise=400)
    return BadRequest(f"{service.host} sent no answer.", f"Check base_url: is it a {what} API?")


def from_network(service: ModelService, error: BaseException) -> ProviderError:
    """Return the error for a failure below HTTP: names, sockets, TLS, time-outs, a body that ended early."""
    where = service.host
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    kinds = " ".join(type(link).__name__ for link in chain)
    said = " ".join(str(link) for link in chain)
    if "RedirectRefused" in kinds or "TooManyRedirects" in kinds:
        to = "in circles" if "TooManyRedirects" in kinds else f"on to {service.masked(str(chain[-1]))}"
        return BadRequest(f"{where} sends requests {to}.", DIRECT)
    if "ProxyError" in kinds:
        what = f"The proxy can't reach {where}: {service.quote(str(chain[-1]))}"
        return (ConnectionLost if str(chain[-1]).startswith("5") else BadRequest)(what, PROXY)
    if "Timeout" in kinds:
        return ConnectionLost(f"{where} did not answer in time.", "Try again, or use another model with /model.")
    if insecure := next((link for link in chain if isinstance(link, ssl.SSLError)), None):
        return _insecure(service, insecure)
    if "gaierror" in kinds or "getaddrinfo" in said or "resolution" in said:
        return ConnectionLost(f"The name {where} was not found.", "Check the network, the proxy and base_url.")
    if any(isinstance(link, ConnectionRefusedError) for link in chain) or "refused" in said or "All connection" in said:
        hint = "Start the model server, or correct base_url." if service.local else "Check base_url and the network."
        hint = PROXY if _proxied(service.url) else hint
        return ConnectionLost(f"Nothing answers at {where}.", hint)
    return ConnectionLost(f"The connection to {where} broke.", "Check the network, then send the request again.")


def _insecure(service: ModelService, error: ssl.SSLError) -> ProviderError:
    """Return the error for a TLS failure. Those that certificates or settings cause are not retried."""
    where = service.host
    if isinstance(error, ssl.SSLCertVerificationError):
        what = f"The certificate of {where} is not accepted: {service.quote(error.verify_message or str(error))}"
        return BadRequest(what, _CERTIFICATES.get(error.verify_code, _AUTHORITY))
    what = f"No secure connection to {where}: {service.quote(error.reason or str(error))}"
    if error.reason in _PLAIN:
        return BadRequest(what, "The server seems to have no TLS: write base_url with http://.")
    if error.reason in _REFUSED:
        return BadRequest(what, "Check base_url and the proxy; the server and this machine have no common TLS version.")
    return ConnectionLost(what, "Check the network, then send the request again.")


def _proxied(url: str) -> bool:
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - only when nothing answers

    parts = urlsplit(url)
    return not getproxies().keys().isdisjoint({parts.scheme, "all"}) and not proxy_bypass(parts.hostname or "")


def from_body(service: ModelService, body: bytes) -> ProviderError:
    """Return the error for a success status whose body is an incomplete answer or none."""
    if body.lstrip().startswith(b"{"):
        return cut(service)
    return BadRequest(f"{service.host} sent something that is not a model's answer.", "Check base_url.")


def cut(service: ModelService) -> ConnectionLost:
    """Return the error for a stream that ended before the answer did."""
    return ConnectionLost(f"The answer from {service.host} was cut off before its end.", "Send the request again.")


def _by_status(service: ModelService, status: int, code: str, text: str, again: float | None) -> ProviderError:
    tail = f": {service.quote(text)}" if text.strip() else "."
    if status == 402 or (status in {400, 403, 429} and _NO_MONEY.search(f"{code} {text}")):
        return BadRequest(f"{service.name} has no credit left{tail}", "Top up the account, or use /model.")
    if status in {401, 403}:
        what = "credentials" if service.cure else "API key"
        verb = f"does not accept the {what}" if status == 401 else "does not allow this"
        cure = service.cure or f"Paste another key in /setup, or correct {service.variable}."
        return AuthFailed(f"{service.name} {verb} ({status}){tail}", cure)
    if status == 413 or (status != 429 and _TOO_LONG.search(f"{code} {text}")):
        hint = "Start a new session with /clear, or choose a model with a larger window."
        return ContextOverflow(f"The conversation is longer than {service.model} can read{tail}", hint)
    if _MEDIA.search(text) and (status in {400, 415, 422} or (status not in {408, 409, 429} and _BLIND.search(text))):
        return _refused(service, status, code, text)
    if status < 400:
        return BadRequest(f"{service.host} redirects ({status}){tail}", DIRECT)
    if status == 404:
        hint = "Choose another with /model, or check base_url with ba config show."
        return ModelNotFound(f"{service.host} has no model {service.model!r}{tail}", hint)
    if status == 429:
        wait = f"Wait {again:.0f} s" if again and again >= 1 else "Wait"
        hint = f"{wait}, or use another model with /model."
        return RateLimited(f"{service.name} limits the rate of requests{tail}", hint, retry_after=again)
    if status >= 500 or status in {408, 409, 425}:
        hint = "It usually passes; try again, or use another model with /model."
        return ServerOverloaded(f"{service.name} has a server error ({status}){tail}", hint, retry_after=again)
    return _refused(service, status, code, text)


def _refused(service: ModelService, status: int, code: str, text: str) -> RequestRefused:
    """Return the error for a refused part of a request, with the media that the server names."""
    place, most = _PLACE.search(text) or _PLACE.search(code), _MOST_MEDIA.search(text)
    media = _MEDIA.search(text) is not None
    return RequestRefused(
        f"{service.name} refused the request ({status}){f': {service.quote(text)}' if text.strip() else '.'}",
        "Check the model's settings; /model changes the model.",
        media=media,
        most=int(most[1] or most[2]) if media and most else 0,
        at=tuple(int(number) for number in place.groups() if number) if place else (),
    )


def _said(body: object) -> tuple[str, str]:
    """Return the codes and the text of an error body, wherever the server put them; of long texts the beginning."""
    code, text = _stated(body)
    return code[:READ], text[:READ]


def _stated(body: object) -> tuple[str, str]:
    if isinstance(body, bytes | str):
        try:
            body = decode(body)
        except ValueError:
            text = body if isinstance(body, str) else body.decode("utf-8", "replace")
            return _stated(text[5:]) if text.startswith("data:") else ("", _of_page(text))
    outer = fields(body) or fields(next(iter(items(body)), None))
    inner: Any = outer.get("error") or outer.get("detail") or outer.get("base_resp") or outer
    inner = next(iter(items(inner)), inner)
    if isinstance(inner, str):
        return "", inner
    found = fields(inner) or outer
    code = " ".join(str(found[key]) for key in ("type", "code", "param") if found.get(key))
    text = next((said for key in ("message", "msg", "status_msg") if (said := text_of(found.get(key)))), "")
    text = text or text_of(outer.get("message"))
    raw = text_of(fields(found.get("metadata")).get("raw"))
    return code, f"{text}: {raw}" if raw and raw not in text else text


def _of_page(text: str) -> str:
    """Return the text of an error page: its title, without styles and scripts."""
    title = _TITLE.search(text)
    return re.sub(r"<[^>]*>", " ", title[1] if title and title[1].strip() else text)


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    if milliseconds := _number(headers.get("retry-after-ms", "")):
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    if value:
        from email.utils import parsedate_to_datetime  # noqa: PLC0415 - rare, and slow to load

        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except ValueError:
            return None
    found = _AGAIN.search(text)
    return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60}[found[2].lower()] if found else None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
