"""Generic simulators: Gymnasium environments, vector environments and EnvPool."""
