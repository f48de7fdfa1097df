"""The suite `fusion`: how many kernels programs become, and how many bytes those move, ours and TorchInductor's."""
