"""The suite `layouts`: convolutions in both layouts against the table of `compiler/passes/price.py`, and
convolution nets with tensors laid out as the compiler chooses and as eager does."""
