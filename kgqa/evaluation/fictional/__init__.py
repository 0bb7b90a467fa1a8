"""Graphs whose facts contradict the world (Tournament on Path, sections 3.4 and 6.2.2): `fictionalise` rewires one,
`world` invents one. A model that answers from what it remembers is wrong there; one that reads the graph is not.
"""
