"""Which kernel runs the code of which agent."""

from __future__ import annotations

import gc
from typing import Any, cast

from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.data.tools.python_kernels import Kernels


def test_a_sub_agent_has_a_kernel_of_its_own_which_goes_with_it() -> None:
    nowhere: Any = cast("Any", None)
    kernels = Kernels(nowhere, nowhere)
    turn = Turn()
    main = Branch(turn, Transcript())
    assert kernels.of(main) is kernels.of(Branch(turn, Transcript())) is kernels.main
    child, other = main.fork("explore"), main.fork("explore")
    assert kernels.of(child) is kernels.of(child)
    assert len({id(kernels.of(each)) for each in (main, child, other)}) == 3
    del child, other
    gc.collect()
    assert not kernels._others
