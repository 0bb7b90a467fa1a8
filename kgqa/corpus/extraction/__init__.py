"""From chunks of text to entities, statements and hyperedges, each with the place where the text says so."""
