"""The search for relation paths: topic linking, masking of topic names, and beam search."""
