"""The tools that ba brings, a file each. May import what tools may."""
