"""How the tokens of each model are counted: layers of token_encoders.yaml, and encoders that Python code adds."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

from annotated_types import Ge, Le, MinLen

from ba_tui.core.errors import UsageError
from ba_tui.core.values import frozen
from ba_tui.resources import UserFolders, bundled, there
from ba_tui.settings.fields import NUMBER, Address, FieldCheck
from ba_tui.settings.plain import made

if TYPE_CHECKING:
    from pydantic import ValidationError

    from ba_tui.providers.marked_yaml import YamlNode


O200K = "o200k_base"
CL100K = "cl100k_base"


class Family(StrEnum):
    """Models with similar tokenizers."""

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
    """One entry of token_encoders.yaml. ``margin``: the factor on counts in ``encoding``. ``exact``: the encoding is
    the model's own, so its counts need no correction. ``exact_counting_api``: the provider's counting endpoint."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    family: Annotated[Family, FieldCheck(_lower, first=True)] = Family.CUSTOM
    encoding: Annotated[str, MinLen(1)] = O200K
    margin: Annotated[float, NUMBER, Ge(1), Le(10)] = 1.2
    exact: bool = False
    exact_counting_api: Address | None = None
    params: dict[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready mapping for ``from_dict``."""
        return {**asdict(self), "family": self.family.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EncoderConfig:
        """Parse a mapping. Raises ValueError naming the field."""
        try:
            return made(cls, data)
        except ValueError as error:
            raise ValueError(_named_fields(cast("ValidationError", error))) from error

    def validate(self) -> None:
        """Check all fields. Raises ValueError naming the field."""
        EncoderConfig.from_dict(self.to_dict())


def _named_fields(error: ValidationError) -> str:
    """Return each wrong field in a few words."""
    said = "; ".join(f"{'.'.join(map(str, part['loc'])) or 'the entry'}: {part['msg']}" for part in error.errors())
    return said.replace("Input should be", "must be").replace("Value error, expected", "must be").rstrip(".")


FILE = "token_encoders.yaml"
Measure = Callable[[str], int]
_NAMES: Mapping[Family, tuple[str, ...]] = {
    Family.CLAUDE: ("claude",),
    Family.GEMINI: ("gemini", "gemma"),
    Family.GLM: ("glm", "chatglm"),
    Family.QWEN: ("qwen", "qwq", "qvq"),
    Family.DEEPSEEK: ("deepseek",),
    Family.MISTRAL: ("mistral", "mixtral", "ministral", "magistral", "codestral", "devstral", "pixtral"),
    Family.LLAMA: ("llama", "codellama", "meta-llama"),
    Family.GPT: ("gpt", "chatgpt", "o1", "o3", "o4", "text-embedding-3", "davinci", "babbage"),
}


class ModelEncoderRegistry:
    """Finds the configuration of a model: by exact name, then pattern, then family, then a careful default.

    Later layers win over earlier ones; among the patterns of a layer, the longest wins. ``problems``: the entries that
    were left out.
    """

    def __init__(self) -> None:
        self._exact: dict[str, EncoderConfig] = {}
        self._patterns: list[dict[str, EncoderConfig]] = [{}]
        self._families: dict[Family, EncoderConfig] = {}
        self._encoders: dict[str, Measure] = {}
        self.problems: list[str] = []

    def find(self, model: str) -> EncoderConfig:
        """Return the configuration of ``provider/model`` or a bare name. Never fails: unknown models get the default
        margin of 1.2."""
        names = _names(model)
        for name in names:
            if name in self._exact:
                return self._exact[name]
        for layer in reversed(self._patterns):
            for pattern in sorted(layer, key=len, reverse=True):
                if any(fnmatch.fnmatchcase(name, pattern) for name in names):
                    return layer[pattern]
        family = family_of(model)
        return self._families.get(family) or EncoderConfig(family=family)

    def register(self, model: str, config: EncoderConfig) -> None:
        """Set the configuration of a name or a pattern (``*``, ``?``); it wins over every file."""
        plain = _plain(model)
        if set(plain) & set("*?["):
            self._patterns[-1][plain] = config
        else:
            self._exact[plain] = config

    def register_family(self, family: Family, config: EncoderConfig) -> None:
        self._families[family] = config

    def register_encoder(self, name: str, measure: Measure) -> None:
        """Add an encoding: ``encoding: name`` in a configuration counts with ``measure``."""
        self._encoders[name] = measure

    def encoder(self, name: str) -> Measure | None:
        """Return the encoder that was registered as ``name``."""
        return self._encoders.get(name)

    def read(self, path: Path) -> None:
        """Add a file as the next layer. Broken entries or a broken file are left out and listed in ``problems``."""
        from ba_tui.providers.marked_yaml import read_yaml  # noqa: PLC0415 - loads yaml

        self._patterns.append({})
        try:
            top = read_yaml(path)
            parts = top.mapping(("families", "models")) if top else {}
            families = parts["families"].mapping() if "families" in parts else {}
            models = parts["models"].mapping() if "models" in parts else {}
        except UsageError as error:
            self.problems.append(str(error))
            return
        for name, node in families.items():
            if name.strip().lower() not in list(Family):
                self.problems.append(f"{node.file}:{node.line}: {name!r} is no family of models.")
            elif config := self._config(node, name, {"family": name}):
                self._families[config.family] = config
        for name, node in models.items():
            if config := self._config(node, name, {"family": family_of(name)}):
                self.register(name, config)
        # Configurations that Python registers later win over the files.
        self._patterns.append({})

    def _config(self, node: YamlNode, name: str, given: Mapping[str, Any]) -> EncoderConfig | None:
        """Return an entry, completed from its family as it is in the files up to this one."""
        try:
            said = node.value
            if not isinstance(said, dict):
                raise node.wrong("a mapping of keys to values")
            data: dict[str, Any] = {**given, **cast("dict[str, Any]", said)}
            known = str(data["family"]).strip().lower()
            base = self._families.get(Family(known)) if known in list(Family) else None
            own = {**base.to_dict(), "exact": False} if base else {}
            return EncoderConfig.from_dict({**own, **data})
        except (UsageError, ValueError) as error:
            about = str(error).removesuffix(".")
            where = "" if isinstance(error, UsageError) else f"{node.file}:{node.line}: "
            self.problems.append(f"{where}{name}: {about}.")
            return None


def encoder_files(where: UserFolders, project: Path | None) -> tuple[Path, ...]:
    """Return the layers, the most general first. ``project`` is the root of a trusted project."""
    own = (bundled("config") / FILE, where.config / FILE)
    return own if project is None else (*own, project / ".ba" / FILE)


def encoders_of(where: UserFolders, root: Path, trusted: Callable[[], bool]) -> Sequence[Path]:
    """Return the encoder files for the project ``root``; the project's own only if it is ``trusted``."""
    files = [file for file in encoder_files(where, root) if there(file)]
    inside = [file for file in files if file.is_relative_to(root / ".ba")]
    return files if not inside or trusted() else [file for file in files if file not in inside]


def load_encoders(paths: Iterable[Path]) -> ModelEncoderRegistry:
    """Read the files that exist, the most general first."""
    registry = ModelEncoderRegistry()
    for path in paths:
        if path.exists():
            registry.read(path)
    return registry


def family_of(model: str) -> Family:
    """Return the family by the name alone, whatever a reseller adds to it."""
    for name in _names(model):
        words = name.replace("_", "-").replace("/", "-").split("-")
        for family, starts in _NAMES.items():
            if any(name.startswith(start) for start in starts) or any(
                word.startswith(start) for word in words[:3] for start in starts if start not in {"o1", "o3", "o4"}
            ):
                return family
    return Family.CUSTOM


def _plain(name: str) -> str:
    """Return ``name`` with dashes for dots: vendors and resellers write the same version in both ways."""
    return name.strip().lower().replace(".", "-")


def _names(model: str) -> tuple[str, ...]:
    """Return the whole name, then without a provider, a region and a tag: ``bedrock/us.anthropic.claude-…-v1:0``."""
    plain = _plain(model)
    bare = plain.rpartition("/")[2].partition(":")[0]
    vendorless = bare.rpartition("anthropic-")[2] if "anthropic-" in bare else bare
    return tuple(dict.fromkeys((plain, bare, vendorless)))
