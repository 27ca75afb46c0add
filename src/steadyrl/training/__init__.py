"""From episodes to new parameters: batches, engines, the training loop, loggers and checkpoints."""
