"""Methods over text as their papers publish them, without our changes."""
