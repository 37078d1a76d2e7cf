"""EncoderConfig: how one model's tokens are counted, as token_encoders.yaml says it.

Which model gets which stands in registry.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from annotated_types import Ge, Le, MinLen

from ba_tui.core.values import frozen
from ba_tui.settings.fields import NUMBER, Address, FieldCheck
from ba_tui.settings.plain import made

if TYPE_CHECKING:
    from pydantic import ValidationError

O200K = "o200k_base"
CL100K = "cl100k_base"


class Family(StrEnum):
    """Models whose tokenizers are alike."""

    CLAUDE = "claude"
    GPT = "gpt"
    GEMINI = "gemini"
    GLM = "glm"
    QWEN = "qwen"
    LLAMA = "llama"
    MISTRAL = "mistral"
    DEEPSEEK = "deepseek"
    CUSTOM = "custom"


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


@frozen
class EncoderConfig:
    """``margin``: what a count in ``encoding`` is multiplied with. ``exact``: the encoding is the model's own, so that
    its counts need no checking. ``exact_counting_api``: the provider's endpoint that counts, asked where it is set."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    family: Annotated[Family, FieldCheck(_lower, first=True)] = Family.CUSTOM
    encoding: Annotated[str, MinLen(1)] = O200K
    margin: Annotated[float, NUMBER, Ge(1), Le(10)] = 1.2
    exact: bool = False
    exact_counting_api: Address | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; ``from_dict`` gives it back."""
        return {**asdict(self), "family": self.family.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EncoderConfig:
        """Raises ValueError naming the field."""
        try:
            return made(cls, data)
        except ValueError as error:
            raise ValueError(_named_fields(cast("ValidationError", error))) from error

    def validate(self) -> None:
        """Raises ValueError naming the field."""
        EncoderConfig.from_dict(self.to_dict())


def _named_fields(error: ValidationError) -> str:
    """Each wrong field in a few words."""
    said = "; ".join(f"{'.'.join(map(str, part['loc'])) or 'the entry'}: {part['msg']}" for part in error.errors())
    return said.replace("Input should be", "must be").replace("Value error, expected", "must be").rstrip(".")
