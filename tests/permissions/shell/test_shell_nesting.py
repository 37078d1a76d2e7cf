"""No depth of constructs hides a command, and no text makes the reading fail in another way than by saying so."""

from __future__ import annotations

import shlex

from hypothesis import given, settings
from hypothesis import strategies as st

from ba_tui.permissions.shell.walker import expand_script

RAW = [
    "{}; true",
    "true && {}",
    "false || {}",
    "( {} )",
    "{{ {}\n}}",
    "echo $({})",
    'echo "a $({}) b"',
    "if {}\nthen :; fi",
    "while :; do {}\ndone",
    "for x in a b; do {}\ndone",
    "case x in x) {}\n;; esac",
    "f() {{ {}\n}}; f",
    "cat <({})",
    "ls | tee >({})",
    "x=$({})",
    "echo ${{x:-$({})}}",
    "cat <<< $({})",
    "echo 'a' # b\n{}",
    "! {}",
    "a=(1 $({}))",
    "[[ -n $({}) ]]",
    "{} &",
    "true | {}",
]
QUOTED = [
    "bash -c {}",
    "sh -ec {}",
    "eval {}",
    "trap {} EXIT",
    "env -i X=1 bash -lc {}",
    "sudo -u x sh -c {}",
    "find . -exec sh -c {} \\;",
    "xargs -n1 bash -c {}",
    "ssh host {}",
    "watch -n 1 {}",
    "flock l -c {}",
    "su -c {} x",
]


def wrapped(layers: list[tuple[bool, int]]) -> str:
    command = "touch CANARY"
    for raw, index in layers:
        if raw:
            command = RAW[index % len(RAW)].format(command)
        else:
            command = QUOTED[index % len(QUOTED)].format(shlex.quote(command))
    return command


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99)), max_size=5))
def test_no_nesting_hides_a_command(layers: list[tuple[bool, int]]) -> None:
    found = expand_script(wrapped(layers))
    assert found.trouble or any(simple.argv and simple.argv[0].text == "touch" for simple in found.commands)


def test_each_construct_alone_shows_the_command() -> None:
    for layer in [(True, index) for index in range(len(RAW))] + [(False, index) for index in range(len(QUOTED))]:
        found = expand_script(wrapped([layer]))
        assert found.trouble == "", wrapped([layer])
        assert ["touch", "CANARY"] in [[word.text for word in simple.argv][:2] for simple in found.commands]


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("a$(){}[]<>|&;\"'`\\\n #=!*?~-:@%^0 \t"), max_size=24))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert "\n" not in expand_script(text).trouble
