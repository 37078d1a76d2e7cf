"""The floor for the app: a Textual program with one input and nothing else."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Input


class Hello(App[None]):
    """As small as a Textual app with an input gets."""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="hello")


if __name__ == "__main__":
    Hello().run()
