"""A small GRBench: five generated graphs in the published shape, with questions, answers and gold programs."""
