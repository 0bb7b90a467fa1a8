"""What methods share in which a language model acts in turns."""
