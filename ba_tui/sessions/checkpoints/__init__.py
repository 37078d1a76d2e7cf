"""What files were before each turn, and how they come back. May import what sessions may."""
