"""Language models as judges of answers."""
