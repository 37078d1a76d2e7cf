"""One call, opened: its arguments and its result by display type. May import core and textual, nothing else of ours."""
