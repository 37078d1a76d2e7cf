"""Conversations for the tests of compression: made by hand, and any that hypothesis can think of."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from ba_tui.core.messages import Block, Image, Message, Text, Thinking, ToolOutput, ToolUse, user


def count(messages: Sequence[Message]) -> int:
    """Tokens, roughly: bytes by four, and a fixed price for a picture."""
    return sum(4 + sum(map(_size, message.blocks)) for message in messages)


def _size(block: Block) -> int:
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return len(text.encode()) // 4 + 1
        case ToolOutput(content=text):
            return len(text.encode()) // 4 + 5 + 500 * len(block.attachments)
        case ToolUse(input=given):
            return len(str(given).encode()) // 4 + 5
        case Image():
            return 500
        case _:
            return 10


def answer(*blocks: Block) -> Message:
    return Message("assistant", blocks, origin="assistant")


def step(id: str, result: str, *, path: str = "src/a.py", tool: str = "read_file", bad: bool = False) -> list[Message]:
    call = ToolUse(id, tool, {"path": path})
    return [answer(Text("I look."), call), Message("user", (ToolOutput(id, result, bad),), origin="tool")]


def rounds(number: int, *, result: str = "line\n" * 400) -> list[Message]:
    """``number`` rounds of one prompt, one call and one answer."""
    found: list[Message] = []
    for place in range(1, number + 1):
        found += [user(f"Request {place}: look at part {place}."), *step(f"c{place}", result, path=f"src/p{place}.py")]
        found.append(answer(Text(f"Part {place} holds {place * 111} rows.")))
    return found


words = st.one_of(
    st.sampled_from(
        ["Go on.", "请继续，数据有 3 个问题。", "x" * 3_000, "Never touch /etc. Use 5 workers.", "a\n" * 700]
    ),
    st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip())),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any valid conversation: thinking, parallel calls, errors, pictures, steering, a last word of either side."""
    found: list[Message] = []
    for number in range(draw(st.integers(1, 9))):
        pictures = [Image("image/png", "AAAA")] if draw(st.booleans()) else []
        found.append(Message("user", (Text(draw(words)), *pictures)))
        for place in range(draw(st.integers(0, 4))):
            ids = [f"c{number}-{place}-{index}" for index in range(draw(st.integers(1, 2)))]
            thought = [Thinking(draw(words), "signed")] if draw(st.booleans()) else []
            found.append(answer(*thought, *(ToolUse(id, "shell", {"command": draw(words)}) for id in ids)))
            outputs = [ToolOutput(id, draw(words) * draw(st.integers(1, 3)), draw(st.booleans())) for id in ids]
            steered = [Text(draw(words))] if draw(st.booleans()) else []
            found.append(Message("user", (*outputs, *steered), origin="tool"))
        if found[-1].role == "user":
            found.append(answer(Text(draw(words))))
    if draw(st.booleans()):
        found.append(user(draw(words)))
    return found
