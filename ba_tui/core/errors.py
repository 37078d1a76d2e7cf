"""All errors as types. Each message says what happened; ``hint`` says what to do.

BaError
├── UsageError                 bad flag, bad config, bad input: exit 1
├── ProviderError              the model or the connection to it: exit 2
│   ├── AuthFailed             401, 403, no key
│   ├── ModelNotFound          404
│   ├── BadRequest             400 and other refusals of the request itself
│   │   ├── RequestRefused     the server objects to a part of the request
│   │   └── ContextOverflow    the prompt is larger than the window
│   ├── AnswerTooLarge         the model server sends more than any answer needs
│   └── TransientError         another try may succeed
│       ├── RateLimited        429, with ``retry_after`` seconds if known
│       ├── ServerOverloaded   529, 5xx
│       └── ConnectionLost     network, time-out, a stream cut before its end
├── StorageError               the session cannot be read or written: exit 2
│   ├── SessionLocked          another process writes it
│   ├── SessionNotFound
│   ├── SessionNotSaved        its newest entries are only in memory
│   └── NewerSchema            written by a later version of ba
├── MemoryOff                  memory neither stores nor recalls in this session
├── SecretRefused              a text with a secret is not stored
├── PromptRefused              a prompt may not be sent; nothing of it was stored
├── NoThread                   the system cannot start another thread: the turn ends
├── TurnsUsed                  max_turns is reached: this run of ba accepts no more prompts
└── StopTurn                   an interceptor ends the turn
    ├── StepsUsed              max_loops is reached
    ├── ErrorsOnly             error_budget is reached: only failed calls
    └── BudgetUsed             max_cost, max_tokens or a sub-agent's budget is reached
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeAlias, TypeVar

from ba_tui.core.text.wording import with_hint
from ba_tui.core.values import frozen

if TYPE_CHECKING:
    import threading

P = ParamSpec("P")
T = TypeVar("T")
_REFUSED = "can't start new thread"
ErrorKind: TypeAlias = Literal[
    "timeout",
    "rate_limit",
    "resource_error",
    "transient_error",
    "permission_denied",
    "invalid_parameters",
    "not_found",
    "validation_error",
    "execution_error",
    "internal_error",
    "dependency_error",
    "interrupted",
]

RETRYABLE: frozenset[ErrorKind] = frozenset({"timeout", "rate_limit", "resource_error", "transient_error"})
PERMANENT: frozenset[ErrorKind] = frozenset(
    {"permission_denied", "invalid_parameters", "not_found", "validation_error"}
)


@frozen
class ErrorInfo:
    """A failure as data: its kind, one line on what happened, and one on what to do."""

    kind: str
    message: str
    hint: str = ""
    code: str = ""
    retries: int = 0

    @property
    def with_hint(self) -> str:
        """Return the message followed by the hint."""
        return with_hint(self.message, self.hint)


class BaError(Exception):
    """Base of all errors of ba. ``str(error)`` is a line for people; ``hint`` says what to do, and may be empty."""

    kind = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """Return the message followed by the hint."""
        return with_hint(str(self), self.hint)

    def info(self) -> ErrorInfo:
        return ErrorInfo(self.kind, str(self), self.hint)


class UsageError(BaError):
    kind = "usage"


class ProviderError(BaError):
    kind = "provider"


class AuthFailed(ProviderError):
    kind = "auth_failed"


class ModelNotFound(ProviderError):
    kind = "model_not_found"


class BadRequest(ProviderError):
    kind = "bad_request"


class RequestRefused(BadRequest):
    """The server refused the content of a request. ``media``: the error concerns a picture or document. ``most``: the
    number of media that the server accepts in one request, 0 if unknown; ``at``: indexes of the message and part that
    it names; ``keys``: the media in that part (see ``core.messages.media_key``)."""

    def __init__(
        self, message: str, hint: str = "", *, media: bool = False, most: int = 0, at: tuple[int, ...] = ()
    ) -> None:
        super().__init__(message, hint)
        self.media = media
        self.most = most
        self.at = at
        self.keys: tuple[str, ...] = ()


class ContextOverflow(BadRequest):
    kind = "context_overflow"


class AnswerTooLarge(ProviderError):
    kind = "answer_too_large"


class TransientError(ProviderError):
    """A failure that a retry may solve. ``retry_after``: seconds that the vendor asked to wait, if any."""

    kind = "passing"

    def __init__(self, message: str, hint: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class RateLimited(TransientError):
    kind = "rate_limited"


class ServerOverloaded(TransientError):
    kind = "overloaded"


class ConnectionLost(TransientError):
    kind = "connection_lost"


class StorageError(BaError):
    kind = "storage"


class SessionLocked(StorageError):
    kind = "session_locked"


class SessionNotFound(StorageError):
    kind = "session_not_found"


class NewerSchema(StorageError):
    kind = "newer_schema"


class SessionNotSaved(StorageError):
    """The newest entries of a session are only in memory. ``folder``: where they belong. ``partly``: earlier entries
    are saved. ``chosen``: ba was set up not to write there, so the user does not expect a saved session."""

    def __init__(self, why: str, hint: str, folder: str, *, partly: bool = False, chosen: bool = False) -> None:
        super().__init__(f"The session cannot be saved to {folder}: {why}.", hint)
        self.why = why
        self.folder = folder
        self.partly = partly
        self.chosen = chosen

    @property
    def at_end(self) -> tuple[str, str]:
        """Return the message and the hint at exit, when the unsaved entries are lost."""
        what = "The newest part of this session" if self.partly else "This session"
        text = f"{what} was not saved, as {self.folder} can't be written: {self.why}."
        return text, "Make room there, or set BA_HOME to a folder that you can write to; then run it again."


def written_by_newer(what: str, version: object, reads: int) -> str:
    """Return a sentence that a newer ba wrote ``what`` in schema ``version``, and this one ``reads`` an older
    schema."""
    return f"{what} was written by a newer ba (schema {version}, this one reads {reads})."


class MemoryOff(BaError):
    kind = "memory_off"


class SecretRefused(BaError):
    kind = "secret_refused"


class PromptRefused(BaError):
    kind = "prompt_refused"


class TurnsUsed(BaError):
    kind = "turns_used"


class StopTurn(BaError):
    """Ends the turn. ``closing``: the reason that the model reads in a last request without tools; empty for no last
    request."""

    kind = "stopped"

    def __init__(self, message: str, hint: str = "", *, closing: str = "") -> None:
        super().__init__(message, hint)
        self.closing = closing


class StepsUsed(StopTurn):
    kind = "steps_used"


class ErrorsOnly(StopTurn):
    kind = "errors_only"


class BudgetUsed(StopTurn):
    kind = "budget_used"


class NoThread(BaError):
    """The system cannot start another thread. The model cannot solve this, so the turn ends."""

    kind = "resource_error"

    def __init__(self) -> None:
        super().__init__(
            "The system cannot start another thread: a limit of processes (ulimit -u) or of memory is reached.",
            "End other programs, or raise the limit. Then send the prompt again.",
        )


def no_thread(error: BaseException) -> NoThread | None:
    """Return NoThread if ``error`` says that no thread could be started."""
    if isinstance(error, NoThread):
        return error
    return NoThread() if isinstance(error, RuntimeError) and _REFUSED in str(error) else None


def started(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread and return it. Raises NoThread."""
    import threading  # noqa: PLC0415 - workers load this module and start no thread

    thread = threading.Thread(target=work, daemon=True, name=name)
    try:
        thread.start()
    except RuntimeError as error:
        raise NoThread from error
    return thread


async def off_loop(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run ``work`` in a thread, or in the current one if none can be started: for work that must happen, such as
    closing a file."""
    import asyncio  # noqa: PLC0415 - workers load this module and have no loop

    try:
        return await asyncio.to_thread(work, *args, **named)
    except RuntimeError as error:
        if no_thread(error) is None:
            raise
        return work(*args, **named)


def run_loop(main: Coroutine[object, object, T]) -> T:
    """Run ``main`` in a new event loop, like asyncio.run. The result is returned even if the system cannot start the
    thread in which the loop waits for its executor: the interpreter waits for those threads at exit."""
    import asyncio  # noqa: PLC0415 - workers load this module and have no loop

    ended: list[T] = []

    async def kept() -> None:
        ended.append(await main)

    try:
        asyncio.run(kept())
    except RuntimeError as error:
        if not ended or no_thread(error) is None:
            raise
    return ended[0]
