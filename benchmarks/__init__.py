"""Measurements of speed and learning, beside other libraries: see README.md."""
