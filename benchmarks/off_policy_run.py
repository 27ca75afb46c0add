"""One training of one library's DQN or TD3, in a process of its own: `off_policy_learning.py` starts it.

    python benchmarks/off_policy_run.py '{"library": "sbx", "algorithm": "DQN", "env": "CartPole-v1", "seed": 0, ...}'

Prints what came of it as a line of JSON.
"""

from __future__ import annotations

from learning_run import main, train_ours, train_peer
from off_policy_agents import our_agent, peer_agent


def ours(run):
    """Train ours; see `train_ours`."""
    return train_ours(our_agent(run), run["timesteps"])


def sbx(run):
    """Train SBX's; see `train_peer`."""
    import torch

    torch.set_num_threads(run["threads"])  # Its memory hands out PyTorch's tensors.
    return train_peer(peer_agent(run), run["timesteps"])


if __name__ == "__main__":
    main({"ours": ours, "sbx": sbx}, kinds=("deterministic",))
