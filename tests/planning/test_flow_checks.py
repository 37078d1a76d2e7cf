"""What is known to be wrong before the first step: tools, arguments, references, order and nesting."""

from __future__ import annotations

import pytest

from tests.planning.stage import Stage

OUTER = "steps:\n- id: first\n  tool: give\n  args: {value: [1, 2]}\n  save_as: numbers\n"


async def test_what_is_in_order_says_nothing(stage: Stage):
    text = """
    parameters:
      type: object
      properties: {word: {type: string}}
      required: [word]
    steps:
    - {id: a, tool: give, args: {value: [1]}, save_as: some}
    - {id: b, tool: say, args: {text: "{{ word }}"}, needs: [], save_as: said}
    - {id: c, tool: say, args: {text: "{{ some }} {{ said }} {{ steps.a.ok }}"}, needs: [a, b]}
    - if: some
      then: [{tool: say, args: {text: x}, save_as: both}]
      else: [{tool: say, args: {text: y}, save_as: both}]
    - for_each: "{{ some }}"
      as: one
      steps: [{tool: say, args: {text: "{{ one }} {{ both }}"}, save_as: kept}]
      save_as: all
    - {tool: say, args: {text: "{% for one in all %}{{ one }}{% endfor %}"}}
    output: {"all": "{{ all }}", "first": "{{ all[0] }}"}
    """
    assert stage.wrong(text) == []


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("- {tool: sya, args: {text: x}}", "one.yaml:8: steps[2].tool: there is no tool 'sya'; did you mean 'say'?"),
        ("- {flow: say}", "steps[2].flow: there is no workflow 'say'"),
        ("- {tool: say}", "steps[2].args: say: lacks 'text' (string)"),
        ("- {tool: say, args: {text: 3}}", "steps[2].args.text: say: expected string, got integer 3"),
        ("- {tool: say, args: {text: '{{ nmbers }}'}}", "'nmbers' is not known here; did you mean 'numbers'?"),
        ("- {tool: say, args: {text: '{{ later }}'}}\n- {tool: say, args: {text: x}, save_as: later}", "line 9"),
        (
            "- {tool: say, args: {text: '{{ steps.frist.ok }}'}}",
            "'steps.frist' is not known here; did you mean",
        ),
        ("- {tool: say, args: {text: '{{ a b }}'}}", "the template can't be read"),
        ("- {tool: say, args: {text: '{{ a'}}", "the template can't be read"),
        ("- {if: '{{ numbers }} and', then: [{approval: x}]}", "expected one expression"),
        ("- {approval: 'Is {{ it }} right?'}", "steps[2].approval: 'it' is not known here"),
        ("- {tool: say, args: {text: x}, save_as: steps}", "'steps' is a name of the template language already"),
        (
            "- {tool: say, args: {text: x}, needs: [frist]}",
            "no step 'frist' in this list; did you mean 'first'?",
        ),
        ("- {tool: say, args: {text: '{{ numbers }}'}, needs: []}", "expected a step before it, in `needs`"),
        (
            "- {if: numbers, then: [{tool: say, args: {text: x}, save_as: y}]}\n- {tool: say, args: {text: '{{ y }}'}}",
            "which has not ended on every way to here",
        ),
        (
            "- {for_each: '{{ numbers }}', as: n, steps: [{approval: x}]}\n- {tool: say, args: {text: '{{ n }}'}}",
            "'n' is not known here",
        ),
        ("- {for_each: '{{ numbers }}', steps: [{approval: x}], save_as: y}", "expected `save_as` on this last step"),
        (
            "- {id: a, tool: say, args: {text: x}, needs: [b]}\n- {id: b, tool: say, args: {text: x}, needs: [a]}",
            "one.yaml:8: steps[2].needs: these steps wait for each other: ",
        ),
        (
            "- {tool: now, save_as: y, needs: []}\n- {tool: now, save_as: y, needs: []}",
            "the step in line 8 may save 'y' at the same time",
        ),
        ("- {flow: one}", "this workflow calls itself: one → one"),
    ],
)
async def test_what_is_wrong_is_told_with_its_line(stage: Stage, steps: str, said: str):
    told = "\n".join(stage.wrong(OUTER + steps))
    assert said in told
    assert all(line.startswith("one.yaml:") for line in told.splitlines())


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{type: object, properties: {a: {type: strnig}}}", "parameters.properties.a.type: is not a valid JSON Schema"),
        ("{type: object, properties: {a-b: {type: string}}}", "'a-b' can't be used in templates"),
        ("{type: object, properties: {a: {type: string, default: 3}}}", "a.default: expected string, got integer 3"),
        ("{type: object, properties: [a]}", "parameters.properties: is not a valid JSON Schema: expected object"),
        ("{type: array, properties: {}}", "parameters.type: expected object"),
        ("{type: object, required: a}", "parameters.required: is not a valid JSON Schema"),
    ],
)
async def test_a_schema_that_is_none_is_told(stage: Stage, schema: str, said: str):
    assert said in "\n".join(stage.wrong(f"parameters: {schema}\nsteps: [{{approval: x}}]"))


async def test_a_ring_of_workflows_is_told_with_its_whole_path(stage: Stage):
    stage.flow("steps: [{tool: three}]", "two")
    stage.flow("steps: [{approval: x}, {flow: one}]", "three")
    assert "one → two → three → one" in stage.wrong("steps:\n- {flow: two}")[0]


async def test_nesting_has_a_limit(stage: Stage):
    stage.flow("steps: [{approval: x}]", "f6")
    for number in range(5, 1, -1):
        stage.flow(f"steps: [{{flow: f{number + 1}}}]", f"f{number}")
    assert "are nested deeper than 5: one → f2 → f3 → f4 → f5 → f6" in stage.wrong("steps: [{flow: f2}]")[0]
    assert stage.wrong("steps: [{flow: f3}]") == []


async def test_arguments_of_workflows_are_checked_too(stage: Stage):
    stage.flow("parameters: {type: object, properties: {word: {type: string}}}\nsteps: [{approval: x}]", "two")
    assert (
        "two: unknown parameter 'wrod'; did you mean 'word'?" in stage.wrong("steps: [{flow: two, args: {wrod: x}}]")[0]
    )
