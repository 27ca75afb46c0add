"""The commands, one class each. Nothing heavy is imported before a command is known."""
