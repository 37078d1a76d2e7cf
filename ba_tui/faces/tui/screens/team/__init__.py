"""The screen of teams. May import what the other screens may."""
