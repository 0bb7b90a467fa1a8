"""Words, quotes, hints and progress bars."""
