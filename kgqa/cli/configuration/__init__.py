"""The commands that show and write the configuration."""
