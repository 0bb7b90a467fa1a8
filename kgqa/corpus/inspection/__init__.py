"""Looks into a corpus without changing it: its state, its defects, its content in other formats, where facts stand."""
