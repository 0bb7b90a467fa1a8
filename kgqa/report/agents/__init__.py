"""Pages of methods in which a language model acts in turns."""
