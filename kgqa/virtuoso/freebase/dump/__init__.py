"""Reads the Freebase dump and decides which of its lines are kept, repaired or dropped."""
