"""Skills: folders of instructions, found, checked and put before a model. May import core, settings and resources."""
