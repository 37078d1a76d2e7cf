"""``ba memory``: the commands, and entries as text. May import what ``cli`` may."""
