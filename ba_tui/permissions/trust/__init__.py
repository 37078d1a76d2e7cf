"""Which folders are trusted, and what trusting one vouches for. May import what permissions may."""
