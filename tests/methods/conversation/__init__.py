"""Tests of kgqa.methods.conversation."""
