"""From a question to ranked relation paths: linking, masking, the beam."""
