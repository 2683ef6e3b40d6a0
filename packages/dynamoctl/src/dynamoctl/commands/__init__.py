"""Signatures and help of the commands. Each imports its code when it is called."""
