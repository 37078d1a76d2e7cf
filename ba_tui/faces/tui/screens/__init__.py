"""One screen a file, each loaded when it is first shown. Screens import widgets, core and resources."""
