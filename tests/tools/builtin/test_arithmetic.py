"""The calculator: exact, percentages as people say them, bounded."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.tools.builtin.arithmetic import evaluate
from ba_tui.tools.failures import ToolFailure
from tests.tools.conftest import Harness


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("0.1 + 0.2", "0.3"),
        ("1/3*3", "1"),
        ("15% of 240", "36"),
        ("240 + 15%", "276"),
        ("240 - 15%", "204"),
        ("10 / 50%", "20"),
        ("5% + 5%", "0.1"),
        ("200 + 10% of 50", "205"),
        ("10 % 3", "1"),
        ("17 mod 5", "2"),
        ("-7 // 2", "-4"),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ** 2", "-4"),
        ("2^-2", "0.25"),
        ("round(2.675, 2)", "2.68"),
        ("round(-2.5)", "-3"),
        ("sqrt(1/4)", "0.5"),
        ("log(8, 2) + log10(1000)", "6"),
        ("max(1, 2.5, 2) × 2", "5"),
        ("1_000_000 * 1.1", "1100000"),
        ("sin(pi)", "0"),
    ],
)
def test_answers(expression: str, answer: str) -> None:
    assert evaluate(expression).text == answer


def test_what_is_rounded_says_so() -> None:
    assert evaluate("1/3").rounded
    assert evaluate("sqrt(2)").text.startswith("1.414213562373")
    assert not evaluate("1/8").rounded


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "too early"),
        ("1 +", "too early"),
        ("2 3", "Unexpected '3'"),
        ("1/0", "zero"),
        ("9^9^9", "too large"),
        ("2^99999999999", "too large"),
        ("1e999999999", "too large"),
        ("exp(1e9)", "too large"),
        ("factorial(1e9)", "factorial"),
        ("sqrt(-1)", "negative"),
        ("__import__('os')", "Not understood"),
        ("power(2)", "Unknown function"),
        ("x + 1", "Unknown name"),
        ("sqrt(1, 2)", "takes 1 arguments"),
        ("(" * 500 + "1" + ")" * 499, "nested"),
        ("2^" * 300 + "1", "nested"),
        ("sin(1e400)", "too large"),
    ],
)
def test_refusals(expression: str, said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        evaluate(expression)
    assert said in str(caught.value)


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.sampled_from("+-*"))
def test_whole_numbers_are_exact(a: int, b: int, sign: str) -> None:
    expected = {"+": a + b, "-": a - b, "*": a * b}[sign]
    assert evaluate(f"({a}) {sign} ({b})").text == str(expected)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**6), max_value=10**6))
def test_decimals_are_exact(number: object) -> None:
    assert Fraction(evaluate(f"{number} * 2").text) == Fraction(str(number)) * 2


@given(st.text("0123456789.+-*/%^(), eofsqrtlngmacxπ", max_size=40))
def test_any_text_is_answered_or_refused(expression: str) -> None:
    answers: list[str] = []
    try:
        answers.append(evaluate(expression).text)
    except ToolFailure as error:
        answers.append(str(error))
    assert answers[0]


async def test_the_tool_says_whether_it_rounded(harness: Harness) -> None:
    assert (await harness.run("calculator", expression="240 + 15%")).text == "240 + 15% = 276"
    assert (await harness.run("calculator", expression="2 / 3")).text.startswith("2 / 3 ≈ 0.6666")
