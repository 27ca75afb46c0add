"""From any policy to a risk report."""
