"""What is kept of every decision: the pair, its reason, its score, both ways, what would have changed it.

decisions, scores    a pair's record, and what fusing was expected to bring
choices              both ways that were weighed
classify             the exact reason of a refusal
would_fuse           what would have to change
alike                pairs that share no tensor
"""
