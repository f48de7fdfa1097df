"""What FX graphs tell, whoever made them: read by all that works on graphs, from capture to lowering.

fake_values   sizes, devices and strides, by the fake tensor of each node
lines         from what torch remembers of a stack to lines of the snippet
notes         what the compiler itself notes at graphs and nodes
"""
