"""Methods that answer from the text of a corpus: what they share, and the baseline `rag`."""
