"""What a command really runs, at any depth, and what its words come to. May import what permissions may."""
