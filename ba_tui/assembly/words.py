"""What a model is told beside the conversation, and about how large each part of a request is."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ba_tui.core.errors import UsageError
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.core.tool import Tool
from ba_tui.permissions.trust import Trust
from ba_tui.providers.tokens import DynamicTokenCounter, Scale
from ba_tui.providers.tokens_calibration import Calibrating, Calibration
from ba_tui.providers.tokens_registry import ModelEncoderRegistry, encoder_files, load_encoders
from ba_tui.resources import Places, bundled, project_root, read_regular, there
from ba_tui.settings import Settings
from ba_tui.tools.images import measured

RATIOS = "token-ratios.json"
LARGEST = 1_000_000
"""Bytes of a system prompt of the person's own."""


def system_prompt(settings: Settings, cwd: Path) -> str:
    """The stable part of every request; made once for a conversation, so that the provider's cache holds.

    Raises:
        UsageError: the person's own prompt file can't be read.
    """
    path = settings.system_prompt_file or bundled("config") / "prompts" / "system.md"
    try:
        # What a shell hands over, <(command), is a pipe and comes to its end; another may not.
        handed = path.is_relative_to("/dev/fd")
        text = path.read_text("utf-8") if handed else read_regular(path, LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"The system prompt {path} can't be read: {why}.", "Check system_prompt_file.") from error
    if settings.system_prompt_file is None:
        facts = {
            "cwd": str(cwd),
            "platform": f"{platform.system()} {platform.machine()}",
            "shell": "bash",
            "date": f"{datetime.now().astimezone():%Y-%m-%d}",
            "git": _branch(project_root(cwd)),
        }
        for name, value in facts.items():
            text = text.replace(f"{{{name}}}", value)
    return joined(text, settings.append_system_prompt)


def joined(*parts: str) -> str:
    """The parts that say something, one after the other."""
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _branch(root: Path) -> str:
    try:
        head = read_regular(root / ".git" / "HEAD", 4_096).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return f"Git branch at the start: {head.removeprefix('ref: refs/heads/')}" if head.startswith("ref: ") else ""


class Tokens:
    """Tokens for the model in use: estimates by its family, which real usage corrects. For the event loop: cheap, and
    what was counted once is not counted again."""

    def __init__(self, where: Places, model: Callable[[], ModelInfo], cwd: Path) -> None:
        self._model = model
        self._files = encoders_of(where, cwd)
        self._registry: ModelEncoderRegistry | None = None
        self._calibration = Calibration(where.state / RATIOS)
        self._counters: dict[str, DynamicTokenCounter] = {}

    @property
    def counter(self) -> DynamicTokenCounter:
        """Of the model in use."""
        info = self._model()
        if info.id not in self._counters:
            self._counters[info.id] = self._made(info)
        return self._counters[info.id]

    @property
    def problems(self) -> Sequence[str]:
        """Entries that were left out of a token_encoders.yaml of the person's or the project's."""
        return self._encoders().problems if len(self._files) > 1 else ()

    def text(self, text: str) -> int:
        return self.counter.text(text)

    def count(self, messages: Sequence[Message]) -> int:
        return self.counter.conversation(messages)

    def aside(self, messages: Sequence[Message]) -> int:
        """Of messages that are not in the conversation; what is known of that stays known."""
        return self._made(self._model()).conversation(messages)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        return self.counter.tools(tools)

    def parts(self, messages: Sequence[Message]) -> tuple[int, int]:
        """What was said and called, and what tools returned; together they are ``count``."""
        return self.counter.parts(messages)

    def calibrating(self, fixed: Callable[[], int], tools: Callable[[], Sequence[Tool]]) -> Calibrating:
        """The interceptor that learns. ``fixed``: tokens of system prompt and ``tools``, as counted here."""

        def estimated(messages: Sequence[Message]) -> float:
            return (fixed() + self.count(messages)) / self._calibration.ratio(self._model().id)

        return Calibrating(estimated, self._calibration.learn, tools)

    def save(self) -> None:
        """Keep what was learned. Writes a file: call it off the loop."""
        self._calibration.save()

    def _made(self, info: ModelInfo) -> DynamicTokenCounter:
        config = self._encoders().find(info.name)
        scale = Scale(lambda: config.margin * self._calibration.ratio(info.id), config.family, _pixels)
        return DynamicTokenCounter(scale=scale)

    def _encoders(self) -> ModelEncoderRegistry:
        if self._registry is None:
            self._registry = load_encoders(self._files)
        return self._registry


def encoders_of(where: Places, cwd: Path) -> Sequence[Path]:
    """The files that say how tokens are counted in ``cwd``; a project's own only where it is trusted."""
    root = project_root(cwd)
    files = [file for file in encoder_files(where, root) if there(file)]
    inside = [file for file in files if file.is_relative_to(root / ".ba")]
    return files if not inside or Trust(where).trusted(root) else [file for file in files if file not in inside]


def _pixels(data: bytes) -> tuple[int, int] | None:
    picture = measured(data)
    return (picture.width, picture.height) if picture else None
