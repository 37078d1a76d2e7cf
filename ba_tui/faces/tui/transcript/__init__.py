"""The conversation on the screen. May import core, rich and textual; nothing else of ours."""
