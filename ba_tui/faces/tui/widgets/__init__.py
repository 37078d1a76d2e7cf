"""One widget a file: attributes come down, messages go up.

Widgets import core, the inspector, the transcript and each other; a screen only when it is opened.
"""
