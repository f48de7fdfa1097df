"""Rewrites of Dynamo's graph, before AOTAutograd derives gradients and splits it.

`rewriting` holds the list of rewrites and what each left behind, `attention` finds attention written by hand, `masks`
says which scores its mask leaves out, `replacement` writes the fused operator, `called` simplifies the masks of calls
of that operator, `reasons` is the closed list of why a near miss stays as it was written, and `calls` reads the calls
of an FX graph whichever way they were spelt. What does not depend on a call's values is computed by `constants`.

Attention is told by its two products (`products`), by heads that are repeated (`heads`) and by tensors that hold the
same many times over (`repeated`); `patterns` tells what a mask that is the same in each call amounts to. `writer`
writes the calls, and `layouts` follows strides that are others then. `runtime/checking/rewrite_check.py` compares both
graphs. Regions that are to be compiled once are written out by `regions`.

In the joint graph of a training step four more are made: `one_hot`, `picked_numbers`, and the two of `joint`.
"""
