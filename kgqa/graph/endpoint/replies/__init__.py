"""Reading the replies of a SPARQL server: checking that they are complete, and decoding their terms."""
