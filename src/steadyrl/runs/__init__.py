"""Many trainings on disk: jobs, sweeps, experiments, and where they run."""
