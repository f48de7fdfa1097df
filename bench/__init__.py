"""The benchmark: Fusionscope against eager PyTorch, TorchInductor, and the least that memory allows."""
