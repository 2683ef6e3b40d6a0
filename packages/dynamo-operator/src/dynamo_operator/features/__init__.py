"""What a graph may use, a module or folder for each."""
