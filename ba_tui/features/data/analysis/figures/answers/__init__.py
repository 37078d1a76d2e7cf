"""An answer taken apart: its structure, its figures, and what in it is no figure. May import core and words."""
