"""What goes into the window beside the talk. May import core, settings, resources and resilience only."""
