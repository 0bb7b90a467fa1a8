"""All that speaks SPARQL."""
