"""Conditions in a script: what was said and done so far, for the steps and the arguments that depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from ba_tui.core.messages import Message, ToolOutput
from ba_tui.core.values import frozen


@frozen
class Talk:
    """The messages of a request."""

    messages: Sequence[Message]

    @property
    def newest(self) -> Sequence[ToolOutput]:
        """The results of the last calls."""
        return list(_outputs(self.messages[-1:]))

    def succeeded(self) -> frozenset[str]:
        """The ids of all calls that succeeded."""
        return frozenset(output.tool_use_id for output in _outputs(self.messages) if not output.is_error)


@frozen
class When:
    """Conditions; None and empty ones are not looked at.

    ``denied``, ``failed``, ``interrupted``: whether a call of the last answer was denied, returned any error, was
    interrupted; neither true nor false where the last answer had no calls. ``compacted``: whether a summary stands for
    earlier messages. ``done``: ids of calls that succeeded, all of them. ``said``: words of the newest message to the
    model. ``result``: text in a result of the last calls. ``unless``, in files ``not``: conditions that must not all
    hold.
    """

    denied: bool | None = None
    failed: bool | None = None
    interrupted: bool | None = None
    compacted: bool | None = None
    done: tuple[str, ...] = ()
    said: str = ""
    result: str = ""
    unless: When | None = None

    def holds(self, talk: Talk) -> bool:
        return all(self._each(talk))

    def _each(self, talk: Talk) -> Iterator[bool]:
        yield from self._of_calls(talk.newest)
        yield self.compacted in {None, any(message.origin == "compaction" for message in talk.messages)}
        yield talk.succeeded().issuperset(self.done)
        yield not self.said or (bool(talk.messages) and self.said in talk.messages[-1].text)
        yield not self.result or any(self.result in output.content for output in talk.newest)
        yield self.unless is None or not self.unless.holds(talk)

    def _of_calls(self, outputs: Sequence[ToolOutput]) -> Iterator[bool]:
        kinds = {output.error.kind for output in outputs if output.is_error and output.error}
        facts = (
            (self.denied, "permission_denied" in kinds),
            (self.failed, any(output.is_error for output in outputs)),
            (self.interrupted, "interrupted" in kinds),
        )
        return (bool(outputs) and wanted == found for wanted, found in facts if wanted is not None)


@frozen
class Choice:
    """An argument that depends on ``when``."""

    when: When
    then: Any
    otherwise: Any


def decided(value: Any, talk: Talk) -> Any:
    """``value`` with one of both sides in the place of each choice within."""
    match value:
        case Choice(when=when, then=then, otherwise=otherwise):
            return decided(then if when.holds(talk) else otherwise, talk)
        case Mapping():
            return {key: decided(item, talk) for key, item in cast("Mapping[str, Any]", value).items()}
        case list():
            return [decided(item, talk) for item in cast("list[Any]", value)]
        case _:
            return value


def _outputs(messages: Sequence[Message]) -> Iterator[ToolOutput]:
    return (block for message in messages for block in message.blocks if isinstance(block, ToolOutput))
