"""Where episodes happen, many side by side: Gymnasium environments, and faster faces of some of them."""
