import torch


@torch.compile
def nucleus(logits, threshold):
    ordered = logits.sort(-1, descending=True).values
    chances = torch.softmax(ordered, -1)
    before = chances.cumsum(-1) - chances
    kept = torch.where(before < threshold, chances, 0.0)
    return kept / kept.sum(-1, keepdim=True), ordered.cummin(-1).values


nucleus(torch.randn(16, 1000), torch.full((16, 1), 0.9))
