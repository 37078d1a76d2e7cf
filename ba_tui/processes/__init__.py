"""Child processes: supervised, limited, ended with all their descendants, with bounded output. May import core only."""
