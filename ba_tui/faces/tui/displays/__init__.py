"""How each display type is shown: one file a type. May import core, textual, and rows of transcript and inspector."""
