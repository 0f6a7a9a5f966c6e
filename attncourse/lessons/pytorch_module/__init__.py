"""PyTorch module: attention that learns."""
