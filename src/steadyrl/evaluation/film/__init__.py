"""Films of episodes: choose them by their return, replay them exactly, draw captions, write a file."""
