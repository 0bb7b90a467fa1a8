"""Facts that can be read without a language model: few, precise, each with the rule that found it."""
