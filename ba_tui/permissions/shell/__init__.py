"""Shell commands: read as bash reads them, taken apart, judged. May import what permissions may."""
