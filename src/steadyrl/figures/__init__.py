"""Pictures of runs. They read what runs wrote, and never train."""
