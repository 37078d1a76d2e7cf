"""Lists of sessions and searches through them. May import what sessions may."""
