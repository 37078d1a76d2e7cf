"""What a server may ask of its client: to fill in a form, to ask a model, to know the folders of the session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

import mcp_types as types

from ba_tui.core.errors import BaError
from ba_tui.core.questions import Question
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.features.mcp.client.forms import agreed_to_open, filled
from ba_tui.features.mcp.client.values import Sample

if TYPE_CHECKING:
    from collections.abc import Generator

    from mcp.client import ClientRequestContext


MOST_SAMPLES = 10
"""Requests to a model in one call."""
SAMPLE_CHARS = 20_000
NOBODY = "No call of this server is running, so nobody can be asked."
_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


class ServerRequests:
    """The callbacks of one connection. Questions go to the call that runs; there is nobody to ask without one."""

    def __init__(self, server: str, roots: Callable[[], Sequence[Path]], sample: Sample | None) -> None:
        self._server, self._roots, self._sample = server, roots, sample
        self._calls: list[Call] = []
        self._sampled: dict[str, int] = {}

    @contextmanager
    def during(self, call: Call | None) -> Generator[None]:
        """While ``call`` runs, it hears what the server asks."""
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
        """Ask the person; see ``forms``."""
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
        """Ask a model for the server, once the person has agreed to just this text."""
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
            return types.ErrorData(code=types.INVALID_REQUEST, message="The person declined.")
        try:
            answer, model = await sample(system, text, call)
        except BaError as error:
            return types.ErrorData(code=types.INTERNAL_ERROR, message=one_line(str(error), 300))
        content = types.TextContent(type="text", text=answer)
        return types.CreateMessageResult(role="assistant", content=content, model=model, stop_reason="endTurn")

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """The folders of the session."""
        del context
        folders = self._roots()
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri(), name=path.name) for path in folders])  # pyright: ignore[reportArgumentType]

    def current(self) -> Call | None:
        """The newest call that runs."""
        return self._calls[-1] if self._calls else None

    def _asking(self) -> Call | None:
        """The call that a request belongs to: that of its own task, else the newest that runs."""
        return _current.get() or self.current()


def _spoken(messages: Sequence[types.SamplingMessage]) -> str:
    """The messages as one text: a single one as it is, several with who said what."""
    said = [(message.role, "\n".join(_texts(message.content))) for message in messages]
    return said[0][1] if len(said) == 1 else "\n\n".join(f"{role}: {text}" for role, text in said)


def _texts(content: object) -> list[str]:
    blocks = content if isinstance(content, list) else [content]  # pyright: ignore[reportUnknownVariableType]
    return [
        block.text if isinstance(block, types.TextContent) else "[content that is no text was left out]"
        for block in blocks  # pyright: ignore[reportUnknownVariableType]
    ]
