"""Trajectories of runs, and their exports for training."""
