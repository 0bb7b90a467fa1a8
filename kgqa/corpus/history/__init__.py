"""The log of edits of a corpus and what is done with it: listing, review, undo, merge, earlier states."""
