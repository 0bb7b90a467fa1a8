"""HTTP requests to a SPARQL server: wording, limits, login, retries and deadlines."""
