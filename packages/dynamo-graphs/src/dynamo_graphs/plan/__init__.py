"""What should happen next to a graph that is alive: restart, suspend, scale, roll out. Pure decisions."""
