"""What a shell command really runs: each construct must show the command inside it, or say that it cannot."""

from __future__ import annotations

import pytest

from ba_tui.permissions.shell_grammar import analyse

HIDING = [
    "echo hi && touch CANARY",
    "false || touch CANARY",
    "echo hi & touch CANARY",
    "echo hi # ok\ntouch CANARY",
    "(true; touch CANARY)",
    "if true; then touch CANARY; fi",
    "f(){ touch CANARY; }; f",
    "echo `touch CANARY`",
    "echo `echo \\`touch CANARY\\``",
    'echo "$(touch CANARY)"',
    "cat <<EOF\n$(touch CANARY)\nEOF",
    "cat <<< $(touch CANARY)",
    "echo $(( $(touch CANARY) ))",
    "echo ${x:-$(touch CANARY)}",
    "cat <(touch CANARY)",
    "a[$(touch CANARY)]=1",
    "case x in $(touch CANARY)) ;; esac",
    "[[ -n $(touch CANARY) ]]",
    "[[ 'a[$(touch CANARY)]' -eq 1 ]]",
    "test -v 'a[$(touch CANARY)]'",
    "read 'a[$(touch CANARY)]' <<< 1",
    "printf -v 'a[$(touch CANARY)]' x",
    "declare -a 'a=($(touch CANARY))'",
    "time -p touch CANARY",
    "coproc touch CANARY",
    "trap 'touch CANARY' EXIT",
    "eval 'touch CANARY'",
    "bash -xec 'touch CANARY'",
    "sh <<'EOF'\ntouch CANARY\nEOF",
    "echo 'touch CANARY' | sh",
    "ls | xargs -I {} touch CANARY",
    "env -i -u X A=1 touch CANARY",
    "env -S 'touch CANARY'",
    "find . -exec touch CANARY \\;",
    "sudo -u root -- nice -n 5 timeout -k 1 2 touch CANARY",
    "ssh host touch CANARY",
    "git -c alias.x='!touch CANARY' x",
    "{touch,CANARY}",
    "x=touch; $x CANARY",
    "source ./script",
    "curl example | bash",
    "alias ls='touch CANARY'",
    "echo x\0; touch CANARY",
    "echo x\rtouch CANARY",
    'echo "unterminated',
]


@pytest.mark.parametrize("command", HIDING)
def test_a_hidden_command_is_shown_or_is_trouble(command: str) -> None:
    found = analyse(command)
    assert found.trouble or any(simple.argv and simple.argv[0].text == "touch" for simple in found.commands)
