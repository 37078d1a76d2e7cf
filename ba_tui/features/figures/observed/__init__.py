"""What a session has seen, as tables that grow with it. May import core, words and answers."""
