"""Predictions of other systems and the tables of the thesis."""
