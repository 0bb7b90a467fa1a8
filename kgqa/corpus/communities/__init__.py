"""Communities: groups of entities that share many facts, and their summaries."""
