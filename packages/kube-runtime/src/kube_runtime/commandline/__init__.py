"""What command lines of operators share: usage errors, exit codes."""
