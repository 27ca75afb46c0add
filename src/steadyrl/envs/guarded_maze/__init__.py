"""The Guarded Maze: a short path to the goal through a cell with random reward, and a longer path without risk."""

from steadyrl.envs.guarded_maze.definition import PAPER_LAYOUT, Maze
from steadyrl.envs.guarded_maze.environment import GuardedMazeEnv

__all__ = ["PAPER_LAYOUT", "GuardedMazeEnv", "Maze"]
