"""What the transcript tells the screen. Handlers are named after TranscriptView, which has them too."""

from __future__ import annotations

from textual.message import Message

from ba_tui.faces.tui.transcript.records import Record


class RecordOpened(Message, namespace="transcript_view"):
    """The person wants to see all of ``record``."""

    def __init__(self, record: Record) -> None:
        super().__init__()
        self.record = record


class TranscriptCopy(Message, namespace="transcript_view"):
    """``text`` should go to the clipboard."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class NewBelow(Message, namespace="transcript_view"):
    """``count`` records arrived below what is shown; 0 when the end is in sight again."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count
