"""The model picker: every model of the catalogue with its window and its price."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice


def model_picker(models: Sequence[ModelInfo], current: str, title: str = "Model") -> Picker:
    """Dismissed with the id of a model. ``title``: what it is chosen for."""
    choices = [
        PickerChoice(
            model.id,
            (model.id, short_count(model.window), price(model.prices)),
            current=model.id == current,
        )
        for model in models
    ]
    return Picker(f"{title} · window · $ per million tokens in / out", choices)


def price(prices: Prices | None) -> str:
    """In and out; a dash when it is not known."""
    if prices is None:
        return "—"
    if prices.input == prices.output == 0:
        return "free"
    return f"${prices.input:g} / ${prices.output:g}"
