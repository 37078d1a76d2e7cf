"""Counting messages, conversations and tools, and what real usage does to the estimate."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import MessageDone, TurnStarted
from ba_tui.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolOutput,
    ToolUse,
    Usage,
)
from ba_tui.core.messages import user as said
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.providers.token_calibration import RATIOS, TokenCalibration, Tokens, UsageCalibrator
from ba_tui.providers.token_counter import (
    Counts,
    DynamicTokenCounter,
    encoders_of,
    estimate_characters,
    estimate_tokens,
)
from ba_tui.resources import places
from ba_tui.tools.builtin.media import pixels
from tests.script import collect

PROSE = (
    "The quarterly report shows that revenue grew by twelve percent while the margin fell by three points, mainly "
    "because raw materials became more expensive. Customers like the new version, but it could load faster. "
)
CODE = """def total(rows: list[dict[str, float]]) -> float:
    \"\"\"The sum of what was paid.\"\"\"
    return sum(row["amount"] * (1 - row.get("discount", 0.0)) for row in rows if row["status"] == "paid")
"""
# Counted once with o200k_base.
KNOWN = {
    PROSE: 36,
    CODE: 53,
    "数据分析的第一步是了解数据的来源和质量。我们需要检查缺失值、重复记录以及异常值，然后决定如何处理它们。": 35,
    "Первый шаг анализа данных состоит в том, чтобы понять их происхождение и качество.": 20,
    "id,amount\n1001,18.25\n1002,7.5\n1003,1999.99\n": 27,
}


class Counting:
    """A measure that knows what it was asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> int:
        self.texts.append(text)
        return len(text.split())


async def nothing(args: Any, call: Call) -> ToolResult:
    return ToolResult("done")


def words(count: int, start: str = "w") -> str:
    return " ".join(f"{start}{number}" for number in range(count))


def png(width: int, height: int) -> Image:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII5B", 13, b"IHDR", width, height, 8, 2, 0, 0, 0)
    return Image("image/png", base64.b64encode(head + b"\0" * 4_000).decode())


def counter_of(tmp_path: Path, name: str) -> Tokens:
    return Tokens(
        lambda: ModelInfo(f"test/{name}", "test", name),
        encoders_of(places(), tmp_path, lambda: Trust(places()).trusted(tmp_path)),
        TokenCalibration(places().state / RATIOS),
        pixels,
    )


@pytest.mark.parametrize("text", KNOWN)
def test_the_estimate_is_near_what_an_encoding_says(text: str):
    assert KNOWN[text] * 0.85 <= estimate_tokens(text) <= KNOWN[text] * 1.35


def test_a_long_text_is_estimated_by_samples():
    whole = PROSE * 2_000
    assert estimate_tokens(whole) == pytest.approx(estimate_tokens(PROSE * 200) * 10, rel=0.03)


def test_characters_count_four_a_token_and_fewer_for_cjk():
    assert estimate_characters("a" * 400) == 100
    assert estimate_characters("数" * 150) == 100


def test_every_block_counts():
    counter = DynamicTokenCounter(Counting())
    empty = counter.message(Message("assistant", ()))
    blocks = {
        Text("one two three"): 3,
        Thinking("one two", "signature"): 2,
        RedactedThinking("x" * 40): 10,
        Document("text/plain", base64.b64encode(b"one two three four").decode(), "Title"): 5,
    }
    for block, expected in blocks.items():
        assert counter.message(Message("assistant", (block,))) - empty == expected
    call = ToolUse("id", "shell", {"command": words(5), "list": [words(4), {"deep": words(3)}]})
    assert counter.message(Message("assistant", (call,))) - empty > 12
    assert counter.message(Message("assistant", (Opaque({"say": words(30)}, "test"),))) - empty > 30
    pictures = ToolOutput("id", words(50), attachments=(png(1_500, 1_000),))
    assert counter.message(Message("user", (pictures,))) - empty > 50 + 1_000


def test_pictures_count_by_their_size_and_family(tmp_path: Path):
    def counted(name: str, image: Image) -> int:
        counter = counter_of(tmp_path, name).counter
        return counter.message(Message("user", (image,))) - counter.message(Message("user", ()))

    assert counted("claude-opus-5", png(300, 250)) == 100
    assert counted("claude-opus-5", png(4_000, 3_000)) == 1_600
    assert counted("gpt-4o", png(1_024, 1_024)) == 85 + 4 * 170
    assert counted("gemini-3", png(300, 300)) == 258
    assert counted("claude-opus-5", Image("image/png", url="https://example.org/a.png")) > 1_000


def test_a_pdf_counts_by_its_pages():
    counter = DynamicTokenCounter()
    pages = b"%PDF-1.7\n" + b"<< /Type /Page >>\n" * 3 + b"<< /Type /Pages /Count 3 >>"
    document = Document("application/pdf", base64.b64encode(pages).decode())
    assert 6_000 <= counter.message(Message("user", (document,))) < 6_100
    broken = Document("application/pdf", "no base64 at all!")
    assert counter.message(Message("user", (broken,))) >= 2_000


def test_a_growing_conversation_counts_only_what_is_new():
    measure = Counting()
    counter = DynamicTokenCounter(measure)
    messages = [said(words(20, f"m{number}-")) for number in range(300)]
    before = counter.conversation(messages)
    measure.texts.clear()
    more = said(words(40, "new"))
    assert counter.conversation([*messages, more]) == before + counter.message(more)
    assert measure.texts == [more.text]
    assert counter.conversation(messages[:100]) + counter.conversation(messages[100:]) > before
    measure.texts.clear()
    changed = [*messages[:150], replace(messages[150], blocks=(Text(words(7, "stub")),)), *messages[151:]]
    assert counter.conversation(changed) == before - 20 + 7
    assert measure.texts == [words(7, "stub")]
    assert counter.conversation(()) == 0


def test_tools_count_with_their_schema():
    counter = DynamicTokenCounter()
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": PROSE}}}
    plain = Tool("look", "Looks.", {}, nothing)
    assert counter.tools([Tool("look", "Looks.", schema, nothing)]) > counter.tools([plain]) + 30
    assert counter.tools([plain, plain]) == 2 * counter.tools([plain])
    assert counter.tools(()) == 0


def test_the_cache_is_bounded():
    counts = Counts(100)
    for number in range(1_000):
        counts.of(f"a text that is long enough to keep {number}", len)
    assert len(counts) <= 100


def test_the_ratio_converges_and_survives(tmp_path: Path):
    file = tmp_path / "state" / "ratios.json"
    calibration = TokenCalibration(file)
    for _ in range(10):
        calibration.learn("a/model", 10_000, 12_500)
    assert calibration.ratio("a/model") == pytest.approx(1.25)
    for _ in range(40):
        calibration.learn("a/model", 10_000, 9_000)
    assert calibration.ratio("a/model") == pytest.approx(0.9, abs=0.01)
    other = TokenCalibration(file)
    other.learn("b/model", 1_000, 2_000)
    calibration.save()
    other.save()
    again = TokenCalibration(file)
    assert again.ratio("a/model") == pytest.approx(0.9, abs=0.01)
    assert again.ratio("b/model") == 2.0
    assert again.ratio("c/model") == 1.0


def test_the_ratio_is_bounded_and_ignores_what_is_too_small(tmp_path: Path):
    calibration = TokenCalibration(tmp_path / RATIOS)
    calibration.learn("a", 100, 390)
    assert calibration.ratio("a") == 1.0
    calibration.learn("a", 1_000, 1_000_000)
    assert calibration.ratio("a") == 2.5
    calibration.save()


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"m": [9, 1]}', '{"m": ["x", 1]}', '{"m": [NaN, 1]}'])
def test_a_broken_file_of_ratios_costs_nothing(tmp_path: Path, text: str):
    file = tmp_path / "ratios.json"
    file.write_text(text)
    calibration = TokenCalibration(file)
    assert calibration.ratio("m") == 1.0
    calibration.learn("m", 1_000, 1_500)
    calibration.save()
    assert TokenCalibration(file).ratio("m") == 1.5


async def test_nothing_is_learned_where_the_tools_changed_since_the_request():
    learned: list[float] = []
    tools = ["few"]
    one, two = (Message("assistant", (Text(say),), usage=Usage(input=1_000), model="m") for say in ("Yes.", "No."))
    branch = Branch(Turn(), Transcript())
    branch.emit(TurnStarted(said("hello")))
    calibrating = UsageCalibrator(
        lambda messages: 1_000.0, lambda model, estimated, real: learned.append(estimated), lambda: tools[0]
    )
    await calibrating.before(branch)
    branch.emit(MessageDone(one))
    tools[0] = "many"
    await calibrating.after(one, branch)
    assert learned == []
    branch.emit(TurnStarted(said("again")))
    await calibrating.before(branch)
    branch.emit(MessageDone(two))
    await calibrating.after(two, branch)
    assert learned == [1_000.0]


async def test_a_conversation_learns_from_what_its_answers_cost(tmp_path: Path):
    work = tmp_path / "work"
    (work / ".git").mkdir(parents=True)
    trust_folder(work)
    script = "steps: [{say: One., usage: {input: 30000}}, {say: Two., usage: {input: 30000}}]\n"
    (work / "a.yaml").write_text(script)
    talk = connect({"model": f"scripted:{work}/a.yaml"}, work).library.create()
    await collect(talk.say("hello"))
    await collect(talk.say("and again"))
    await talk.close()
    assert (places().state / RATIOS).exists()
    assert f"scripted:{work}/a.yaml" in (places().state / RATIOS).read_text()
