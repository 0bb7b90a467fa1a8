"""`kgqa chat`: a conversation about a graph in the terminal."""
