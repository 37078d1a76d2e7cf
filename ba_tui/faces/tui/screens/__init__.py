"""Screens, each loaded when it is first shown. They may import all other parts of this face."""
