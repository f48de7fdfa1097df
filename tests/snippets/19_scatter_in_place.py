import torch


@torch.compile
def message_passing(x, weight, source, target):
    messages = torch.tanh(x[source] * weight)
    received = torch.zeros_like(x).index_add(0, target, messages)
    strongest = torch.full_like(x, -1.0).scatter_reduce(0, target[:, None].expand_as(messages), messages, "amax")
    return torch.relu(received + strongest) @ x.t()


edges = 3000
message_passing(
    torch.randn(200, 16), torch.randn(edges, 1), torch.randint(200, (edges,)), torch.randint(200, (edges,))
)
