"""Graphs whose facts contradict the world (Tournament on Path, sections 3.4 and 6.2.2).

`fictionalise` rewires a graph, `invented_world` invents one. A model that answers from memory is wrong there.
"""
