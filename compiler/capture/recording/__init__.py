"""Record the graphs that Dynamo hands over, and what torch reports of each compilation.

intercept, recorder             the snippet's own `torch.compile`, with a backend that records
ledger                          each compilation put together, once the snippet has ended
torch_trace, symbols, artefacts what torch tells meanwhile: its trace, open sizes, texts
"""
