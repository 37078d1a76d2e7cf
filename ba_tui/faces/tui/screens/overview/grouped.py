"""A list under headings, where letters are keys: the frame of the lists of hooks and of context files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, rendered


@frozen
class PickerGroup:
    """Rows under a heading."""

    head: str
    choices: Sequence[PickerChoice]


class GroupedPicker(Picker):
    """``groups`` are shown in their order; columns are aligned over all of them."""

    FILTERED: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "reload", "Refresh"),
        Binding("q", "cancel", "Close", show=False),
        Binding("j", "step(1)", "Down", show=False),
        Binding("k", "step(-1)", "Up", show=False),
    ]

    def __init__(self, title: str, *, keys: str) -> None:
        super().__init__(title, (), keys=keys)
        self.empty = "Looking …"
        self.groups: Sequence[PickerGroup] = ()

    def on_mount(self) -> None:
        self.action_reload()

    def action_reload(self) -> None:
        """Look again."""
        raise NotImplementedError

    def refill(self) -> None:
        """Show all groups, the cursor where it was."""
        options, before = self.query_one(OptionList), self.highlighted
        width = max(20, options.size.width - 4)
        self.choices = [choice for group in self.groups for choice in group.choices]
        rows = {choice.id: row for choice, row in rendered(self.choices, width)}
        found: list[Option] = []
        for place, group in enumerate(self.groups):
            head = Content.styled(paintable(group.head, newlines=False), "bold")
            found.append(Option(head, f"\0{place}", disabled=True))
            found += [Option(rows[choice.id], choice.id) for choice in group.choices]
        options.clear_options()
        options.add_options(found or [Option(self.empty, "\0", disabled=True)])
        ids = [option.id for option in found]
        first = next((index for index, option in enumerate(found) if not option.disabled), None)
        options.highlighted = ids.index(before) if before in ids else first
