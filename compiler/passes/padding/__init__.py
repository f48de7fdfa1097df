"""Matrix products whose sizes tensor cores cannot take eight at a time, made a little larger.

    logits = addmm(b, x, w)            bf16[16384, 768] x bf16[768, 30522]
    ->
    padded = addmm(pad(b), x, pad(w))  bf16[16384, 768] x bf16[768, 30528], pad(w) has six columns of zeros more
    logits = padded[:, :30522]         a view

`decide` weighs each product and leaves a record of it (`choice`), with the prices of `passes/price.py`, and `write`
changes the graph. Another way is rows by several calls, each of which takes those that begin where whole vectors do:
see `ir/library_calls.py`.
"""
