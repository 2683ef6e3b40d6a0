"""The commands as they are typed: signatures and help. What they do is imported when they are called."""
