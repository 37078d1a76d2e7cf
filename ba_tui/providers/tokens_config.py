"""EncoderConfig: how one model's tokens are counted, as token_encoders.yaml says it.

Which model gets which stands in tokens_registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, field_validator
from pydantic.dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class EncoderConfig:
    """``margin``: what a count in ``encoding`` is multiplied with. ``exact``: the encoding is the model's own, so that
    its counts need no checking. ``exact_counting_api``: the provider's endpoint that counts, asked where it is set."""

    family: Family = Family.CUSTOM
    encoding: Annotated[str, Field(min_length=1)] = O200K
    margin: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = 1.2
    exact: bool = False
    exact_counting_api: str | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    @field_validator("family", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
        return value.strip().lower() if isinstance(value, str) else value

    @field_validator("exact_counting_api")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("an http or https address")
        return value

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; ``from_dict`` gives it back."""
        return {**asdict(self), "family": self.family.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EncoderConfig:
        """Raises ValueError naming the field."""
        try:
            return TypeAdapter(cls).validate_python(dict(data))
        except ValidationError as error:
            raise ValueError(_named_fields(error)) from error

    def validate(self) -> None:
        """Raises ValueError naming the field."""
        EncoderConfig.from_dict(self.to_dict())


def _named_fields(error: ValidationError) -> str:
    """Each wrong field in a few words."""
    said = "; ".join(f"{'.'.join(map(str, part['loc'])) or 'the entry'}: {part['msg']}" for part in error.errors())
    return said.replace("Input should be", "must be").replace("Value error, ", "must be ").rstrip(".")
