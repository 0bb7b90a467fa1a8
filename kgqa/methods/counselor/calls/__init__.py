"""What calls of graph functions need: nodes and relations by name, sets with their paths, and observations."""
