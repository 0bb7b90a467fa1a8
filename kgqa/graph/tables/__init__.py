"""Tables derived from a whole graph: labels, mediators, inverse relations."""
