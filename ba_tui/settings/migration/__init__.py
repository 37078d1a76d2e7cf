"""What other assistants left on this machine, what it means here, and writing it. May import what settings may."""
