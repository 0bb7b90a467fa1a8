"""The search for relation paths: linking of topics, masking of their names, and beam search."""
