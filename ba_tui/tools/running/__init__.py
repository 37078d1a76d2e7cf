"""The commands of the model: confined, reviewed, in the foreground or the background. May import what tools may."""
