"""HTTP requests to a SPARQL server: construction, limits, login, retries and deadlines."""
