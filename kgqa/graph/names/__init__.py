"""Building, opening and searching the index of entity names."""
