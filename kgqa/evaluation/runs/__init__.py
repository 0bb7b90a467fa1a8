"""Batches of questions on disk: asked, resumed, merged."""
