"""Models to choose from, and a way to a first answer that a test decides about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.ports.settings import FoundServer
from ba_tui.core.provider import ModelInfo, Prices

MODELS = (
    ModelInfo("demo/tour", "demo", "tour", window=200_000, prices=Prices(0, 0, 0, 0)),
    ModelInfo("anthropic/claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", prices=Prices(3, 15, 0.3, 3.75)),
    ModelInfo("openai/qwen3-coder", "openai", "qwen3-coder", window=131_072),
)


@dataclass
class Ways:
    reason: str = ""
    found: Sequence[FoundServer] = ()
    at: dict[str, FoundServer | BaError] = field(default_factory=dict[str, "FoundServer | BaError"])
    """Servers by what is typed for them and the key, or why there is none."""
    refusals: list[BaError] = field(default_factory=list[BaError])
    """What the next checks of a key end with."""
    checked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    keys: list[tuple[str, str]] = field(default_factory=list)
    remembered: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    full: bool = False

    def missing(self, model: str) -> str:
        return "" if model.partition("/")[0] in dict(self.keys) else self.reason

    def first_model(self, provider: str) -> str:
        return next((info.id for info in MODELS if info.provider == provider), "")

    async def servers(self) -> Sequence[FoundServer]:
        return self.found

    async def find_server(self, address: str, key: str = "") -> FoundServer:
        found = self.at[f"{address} {key}".strip()]
        if isinstance(found, BaError):
            raise found
        return found

    async def check_key(self, provider: str, key: str) -> None:
        self.checked.append((provider, key))
        if self.refusals:
            raise self.refusals.pop(0)

    def save_key(self, provider: str, key: str) -> str:
        if self.full:
            raise StorageError("keys.yaml could not be written: no space left.", "Free some.")
        self.keys.append((provider, key))
        return "~/.config/ba/keys.yaml"

    def use_server(self, server: FoundServer, model: str, key: str = "") -> str:
        self.used.append(model)
        self.keys += [(server.provider, key)] if key else []
        self.reason = ""
        return model

    def use_file(self, path: str) -> str:
        if not path.endswith(".gguf"):
            raise UsageError(f"{path} is not a model in the GGUF format.", "Name another file.")
        self.used.append(f"local:{path}")
        self.reason = ""
        return f"local:{path}"

    def in_slot(self, slot: str, main: str) -> str:
        return self.remembered.get(f"{slot}.model") or main

    def remember(self, key: str, value: str) -> None:
        if key.endswith(".model") and not value.partition("/")[2] and value:
            raise UsageError(f"There is no model {value!r}.")
        self.remembered[key] = value
