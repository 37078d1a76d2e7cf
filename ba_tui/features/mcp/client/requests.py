"""Requests of a server to its client: forms, model requests, the folders of the session."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import mcp_types as types

from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.core.questions import Option, Question, Reply
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.features.mcp.client.values import Sample

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcp.client import ClientRequestContext

# Forms that a server asks the user to fill in. The server's text is displayed and never obeyed; nothing is sent before
# the user has answered.

FormAction: TypeAlias = Literal["accept", "decline", "cancel"]
FIELDS, CHOICES, TRIES = 20, 50, 3
"""Maximum questions of one form, options of one question, and attempts at an answer."""
MESSAGE_CHARS, NAME_CHARS = 1_000, 200
SKIP = "(leave empty)"
WARNING = "What you answer is sent to this server. Do not give it passwords or keys."


REFUSED = "The MCP server {server} asked for a secret ({field}) in a form, which ba declined: it has to use a login."
_WORDS = regex(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET = regex(
    r"\b(?:password|passwd|passphrase|passcode)\b"
    r"|\b(?:api ?|access |private |secret |signing |encryption )key$|\b(?:secret|token|credentials?|cvv|cvc)$"
)
"""Words of a field's name or title that mark it as a secret."""


@frozen
class FormReply:
    """The user's action, and the values of the fields by name."""

    action: FormAction
    values: Mapping[str, Any]


CANCELLED, DECLINED = FormReply("cancel", {}), FormReply("decline", {})


class WrongAnswer(Exception):
    """An answer does not fit its field; the message says what would."""


async def filled(server: str, message: str, schema: Mapping[str, Any], call: Call) -> FormReply:
    """Ask the user for every field of ``schema``, in order."""
    head = f"The MCP server {server} asks: {_said(message, MESSAGE_CHARS)}"
    fields = _group(schema.get("properties"))
    if not fields or len(fields) > FIELDS:
        if fields:
            return DECLINED
        reply = await _asked(call, server, f"{head}\n{WARNING}", (Option("Accept"), Option("Decline")))
        return _refused(reply) or (DECLINED if reply.text == "Decline" else FormReply("accept", {}))
    required = {str(name) for name in cast("Sequence[Any]", schema.get("required") or ())}
    if secret := next((name for name, raw in fields.items() if _wants_secret(name, _group(raw))), ""):
        call.branch.emit(Notice(REFUSED.format(server=server, field=_said(secret, NAME_CHARS)), "warning"))
        return DECLINED
    values: dict[str, Any] = {}
    for number, (name, raw) in enumerate(fields.items(), start=1):
        field = _Field(name, _group(raw), name in required)
        place = f" ({number} of {len(fields)})" if len(fields) > 1 else ""
        refused = await _fill(field, f"{head}\n{field.label}{place}", server, call, values)
        if refused:
            return refused
    return FormReply("accept", values)


async def agreed_to_open(server: str, message: str, url: str, call: Call) -> FormAction:
    """Ask the user to open an address, shown in full."""
    text = (
        f"The MCP server {server} asks you to open an address: {_said(message, MESSAGE_CHARS)}\n"
        f"{paintable(url, reveal=True)}\nba does not open it. Check the host before you do."
    )
    reply = await _asked(call, server, text, (Option("I opened it"), Option("Decline")))
    refused = _refused(reply)
    return refused.action if refused else "accept" if reply.text == "I opened it" else "decline"


async def _fill(field: _Field, text: str, server: str, call: Call, values: dict[str, Any]) -> FormReply | None:
    """Store the answer in ``values``; return the reply that ends the form, if any."""
    why = ""
    for _ in range(TRIES):
        said = f"{text}\n{WARNING}" if not why else f"{text}\n{why}"
        reply = await _asked(call, server, said, field.options, multiple=field.many)
        if refused := _refused(reply):
            return refused
        try:
            value = field.read(reply.text)
        except WrongAnswer as error:
            why = f"That does not fit: {error}"
            continue
        if value is not None:
            values[field.name] = value
        return None
    return CANCELLED


async def _asked(call: Call, server: str, text: str, options: tuple[Option, ...], *, multiple: bool = False) -> Reply:
    question = Question("choice", text, call_id=call.id, tool=f"mcp.{server}", options=options, multiple=multiple)
    return await call.ask(question)


def _refused(reply: Reply) -> FormReply | None:
    if reply.choice != "deny":
        return None
    return DECLINED if reply.by == "person" else CANCELLED


class _Field:
    """One field of a form."""

    def __init__(self, name: str, schema: Mapping[str, Any], required: bool) -> None:
        self.name, self._schema, self._required = name, schema, required
        self.many = schema.get("type") == "array"
        self._choices = _choices(_group(schema.get("items")) if self.many else schema)
        if schema.get("type") == "boolean":
            self._choices = {"Yes": True, "No": False}

    @property
    def label(self) -> str:
        title = _said(str(self._schema.get("title") or self.name), NAME_CHARS)
        about = _said(str(self._schema.get("description") or ""), NAME_CHARS)
        default = self._schema.get("default")
        empty = f"empty: {_shown(default)}" if default is not None else "" if self._required else "may be left empty"
        return f"{title}{f': {about}' if about else ''}{f' [{empty}]' if empty else ''}"

    @property
    def options(self) -> tuple[Option, ...]:
        default = self._schema.get("default")
        named = [Option(label, "default" if value == default else "") for label, value in self._choices.items()]
        skip = [Option(SKIP)] if named and not self._required and default is None and not self.many else []
        return (*named, *skip)

    def read(self, text: str) -> Any:
        """Parse ``text``; return None if the field is left empty. Raises WrongAnswer."""
        text = text.strip()
        if not text or text == SKIP:
            default = self._schema.get("default")
            if default is None and self._required:
                raise WrongAnswer("it needs a value.")
            return default
        if self.many:
            return self._several(text)
        if self._choices:
            return self._chosen(text)
        kind = self._schema.get("type")
        return self._number(text, whole=kind == "integer") if kind in {"number", "integer"} else self._text(text)

    def _chosen(self, text: str) -> Any:
        plain = {label.casefold(): value for label, value in self._choices.items()}
        plain |= {str(value).casefold(): value for value in self._choices.values()}
        if text.casefold() not in plain:
            raise WrongAnswer(f"choose one of {', '.join(self._choices)}.")
        return plain[text.casefold()]

    def _several(self, text: str) -> list[Any]:
        parts = [part.strip() for line in text.splitlines() for part in line.split(",")]
        found = [self._chosen(part) for part in parts if part]
        least, most = self._schema.get("minItems") or 0, self._schema.get("maxItems") or len(found)
        if not least <= len(found) <= most:
            raise WrongAnswer(f"choose {least} to {most}.")
        return found

    def _number(self, text: str, *, whole: bool) -> int | float:
        try:
            number = int(text) if whole else float(text)
        except ValueError:
            raise WrongAnswer("it needs a whole number." if whole else "it needs a number.") from None
        low, high = self._schema.get("minimum"), self._schema.get("maximum")
        if not math.isfinite(number) or (low is not None and number < low) or (high is not None and number > high):
            raise WrongAnswer(f"it needs a number {_range(low, high)}.")
        return number

    def _text(self, text: str) -> str:
        least, most = self._schema.get("minLength") or 0, self._schema.get("maxLength")
        if len(text) < least or (most is not None and len(text) > most):
            raise WrongAnswer(f"it needs {_range(least, most)} characters.")
        kind = self._schema.get("format")
        fits = {"email": "@" in text[1:-1], "uri": "://" in text}.get(str(kind), True)
        if not fits or (kind in {"date", "date-time"} and not _is_date(text)):
            raise WrongAnswer(f"it needs the form {kind}.")
        return text


def _wants_secret(name: str, schema: Mapping[str, Any]) -> bool:
    """Return whether a field asks for a password or a key, which the protocol forbids in forms."""
    if schema.get("type", "string") != "string" or _choices(schema):
        return False
    texts = (name, str(schema.get("title") or ""))
    words = (" ".join(_WORDS.findall(text)).lower() for text in texts)
    return schema.get("format") == "password" or any(map(_SECRET.search, words))


def _choices(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices by their labels; empty for free text."""
    titled = schema.get("oneOf") or schema.get("anyOf")
    if isinstance(titled, list):
        each = [_group(item) for item in cast("list[Any]", titled)]
        pairs = [(str(item.get("title") or item["const"]), item["const"]) for item in each if "const" in item]
    else:
        values = cast("list[Any]", schema.get("enum") or [])
        names = cast("list[Any]", schema.get("enumNames") or values)
        pairs = [(str(name), value) for name, value in zip(names, values, strict=False)]
    return {_said(name, NAME_CHARS): value for name, value in pairs[:CHOICES]}


def _is_date(text: str) -> bool:
    from datetime import datetime  # noqa: PLC0415 - few forms ask for dates

    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _range(low: Any, high: Any) -> str:
    if low is None or high is None:
        return f"of at most {high}" if low is None else f"of at least {low}"
    return f"from {low} to {high}"


def _said(text: str, most: int) -> str:
    return one_line(paintable(text, newlines=False), most)


def _shown(value: Any) -> str:
    return _said(", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value), NAME_CHARS)


def _group(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


MOST_SAMPLES = 10
"""Maximum model requests in one call."""
SAMPLE_CHARS = 20_000
NOBODY = "No call of this server is running, so nobody can be asked."
_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


class ServerRequests:
    """The SDK callbacks of one connection. Questions are asked through the running call; without a call they are
    declined."""

    def __init__(self, server: str, roots: Callable[[], Sequence[Path]], sample: Sample | None) -> None:
        self._server, self._roots, self._sample = server, roots, sample
        self._calls: list[Call] = []
        self._sampled: dict[str, int] = {}

    @contextmanager
    def during(self, call: Call | None) -> Generator[None]:
        """Route the server's questions to ``call`` while it runs."""
        if call is None:
            yield
            return
        token = _current.set(call)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            self._sampled.pop(call.id, None)
            _current.reset(token)

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the user to fill in a form or open an address."""
        del context
        call = self._asking()
        if call is None:
            return types.ElicitResult(action="cancel")
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action=await agreed_to_open(self._server, params.message, params.url, call))
        reply = await filled(self._server, params.message, dict(params.requested_schema), call)
        content = dict(reply.values) if reply.action == "accept" else None
        return types.ElicitResult(action=reply.action, content=content)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask a model for the server, after the user has approved exactly this text."""
        del context
        call, sample = self._asking(), self._sample
        if call is None or sample is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=NOBODY)
        count = self._sampled[call.id] = self._sampled.get(call.id, 0) + 1
        if count > MOST_SAMPLES:
            return types.ErrorData(
                code=types.INVALID_REQUEST, message=f"More than {MOST_SAMPLES} requests in one call."
            )
        system, text = params.system_prompt or "", _spoken(params.messages)
        if len(system) + len(text) > SAMPLE_CHARS:
            message = f"The text is longer than {SAMPLE_CHARS} characters."
            return types.ErrorData(code=types.INVALID_PARAMS, message=message)
        question = Question(
            "permission",
            f"Let the MCP server {self._server} ask the model?",
            call_id=call.id,
            tool=f"mcp.{self._server}",
            args={"system": paintable(system), "text": paintable(text)},
            reason="The server gets the answer; you pay for it.",
            fixed=True,
        )
        reply = await call.ask(question)
        if reply.choice in {"deny", "text"}:
            return types.ErrorData(code=types.INVALID_REQUEST, message="The user declined.")
        try:
            answer, model = await sample(system, text, call)
        except BaError as error:
            return types.ErrorData(code=types.INTERNAL_ERROR, message=one_line(str(error), 300))
        content = types.TextContent(type="text", text=answer)
        return types.CreateMessageResult(role="assistant", content=content, model=model, stop_reason="endTurn")

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Return the folders of the session."""
        del context
        folders = self._roots()
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri(), name=path.name) for path in folders])  # pyright: ignore[reportArgumentType]

    def current(self) -> Call | None:
        """Return the newest running call."""
        return self._calls[-1] if self._calls else None

    def _asking(self) -> Call | None:
        """Return the call that a request belongs to: that of its own task, else the newest running one."""
        return _current.get() or self.current()


def _spoken(messages: Sequence[types.SamplingMessage]) -> str:
    """Return the messages as one text: a single message unchanged, several with their speakers."""
    said = [(message.role, "\n".join(_texts(message.content))) for message in messages]
    return said[0][1] if len(said) == 1 else "\n\n".join(f"{role}: {text}" for role, text in said)


def _texts(content: object) -> list[str]:
    blocks = content if isinstance(content, list) else [content]  # pyright: ignore[reportUnknownVariableType]
    return [
        block.text if isinstance(block, types.TextContent) else "[content that is no text was left out]"
        for block in blocks  # pyright: ignore[reportUnknownVariableType]
    ]
