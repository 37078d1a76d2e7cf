"""Child processes: supervised, limited, ended with all they started, their output bounded. May import core alone."""
