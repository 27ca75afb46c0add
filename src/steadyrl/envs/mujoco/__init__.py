"""MuJoCo tasks with noisy rewards: the tasks, their Gymnasium environments and their batched simulator."""
