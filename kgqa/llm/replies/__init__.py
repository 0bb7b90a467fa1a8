"""Readers of model replies.

No text makes a reader raise, and a reply that can be read in two ways has no value: an unparsed reply is never yes.
"""
