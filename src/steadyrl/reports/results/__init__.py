"""The results of an experiment: collected from run folders, stored in one small file, and drawn from it."""
