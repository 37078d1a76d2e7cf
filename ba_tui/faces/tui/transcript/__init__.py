"""The conversation on the screen. May import core, the meters, rich and textual; nothing else of ours."""
