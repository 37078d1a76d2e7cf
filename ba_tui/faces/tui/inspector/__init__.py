"""One call, opened: its arguments and its result by display type. May import core, textual and the transcript."""
