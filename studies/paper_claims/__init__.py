"""What the paper claims about its experiments, and what its runs here say about each claim."""
