"""Tables derived from a whole graph: relations, labels, mediators, inverses, types."""
