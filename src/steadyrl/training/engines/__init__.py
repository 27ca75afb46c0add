"""Engines: rounds of collecting episodes and updating parameters."""
