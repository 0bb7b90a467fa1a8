"""What a question of a conversation asks, given the questions before it."""
