"""The Guarded Maze: a short way past a guard who takes or gives, a longer one that always pays the same."""

from steadyrl.envs.guarded_maze.definition import PAPER_LAYOUT, Maze
from steadyrl.envs.guarded_maze.environment import GuardedMazeEnv

__all__ = ["PAPER_LAYOUT", "GuardedMazeEnv", "Maze"]
