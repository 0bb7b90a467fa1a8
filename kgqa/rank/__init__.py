"""Orders candidates: knows texts and numbers, neither SPARQL nor a model's API."""
