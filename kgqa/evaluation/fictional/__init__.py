"""Graphs whose facts contradict the world (Tournament on Path, sections 3.4 and 6.2.2).

The module `fictionalise` rewires an existing graph; `invented_world` generates a new graph. A language model that
answers from memory is wrong on these graphs.
"""
