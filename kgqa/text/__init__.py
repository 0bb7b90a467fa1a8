"""Words, quotes, hints and what notebooks show."""
