"""From a question to ranked relation paths: linking, masking and beam search."""
