"""One screen a file, each loaded when it is first shown. Screens import all other parts of this face."""
