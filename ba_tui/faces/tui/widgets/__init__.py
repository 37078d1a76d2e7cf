"""One widget a file: attributes come down, messages go up. Widgets import core and each other, never a screen."""
