"""The files before each turn, and how they are restored. May import what sessions may."""
