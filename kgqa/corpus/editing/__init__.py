"""Edits of a corpus that a language model proposes: gates, trust, overlays, review, and earlier states."""
