"""The index of entity names: built, opened and searched."""
