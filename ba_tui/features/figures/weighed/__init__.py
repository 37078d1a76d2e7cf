"""One figure against the evidence: where it may come from, and how probable that is. May import all of its siblings."""
