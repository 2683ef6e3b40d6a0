"""The watch of one kind: its state machine, its events, its selector."""
