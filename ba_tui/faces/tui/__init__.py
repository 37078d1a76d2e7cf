"""The full-screen face. Imports Textual, core and resources; nothing that is heavy before the first paint."""
