"""Sub-agents on the screen: a fold over their events, their rows, their transcripts. May import what the app may."""
