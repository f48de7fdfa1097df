"""The call that a folded convolution becomes: convolution, bias, sum and ReLU in one kernel of cuDNN.

Where the library has no such kernel for the arguments (and on a CPU, which runs what was decided for a GPU), it is
ATen's convolution and what follows it, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


class FusedConvolution:
    """`relu(convolution(image, filter) + bias + added)`, of images and filters of two dimensions, without groups."""

    __name__ = "convolution_bias_relu"

    def __init__(self) -> None:
        #: Arguments for which the library has no kernel: asking again would cost a search each time.
        self._refused: set[Any] = set()

    def __str__(self) -> str:
        return self.__name__

    def __call__(
        self, image: Tensor, weight: Tensor, bias: Tensor, added: Tensor | None,
        stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    ) -> Tensor:  # fmt: skip
        if image.is_cuda:
            key = (image.shape, weight.shape, image.dtype, *map(tuple, (stride, padding, dilation)), added is None)
            if key not in self._refused:
                try:
                    return _fused(image, weight, bias, added, stride, padding, dilation)
                except RuntimeError as error:
                    if isinstance(error, torch.cuda.OutOfMemoryError):
                        raise
                    self._refused.add(key)
        result = aten.convolution(image, weight, bias, stride, padding, dilation, False, [0, 0], 1)
        return (result if added is None else result.add_(added)).relu_()


def _fused(
    image: Tensor, weight: Tensor, bias: Tensor, added: Tensor | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
) -> Tensor:  # fmt: skip
    if added is None:
        return aten.cudnn_convolution_relu(image, weight, bias, stride, padding, dilation, 1)  # type: ignore[no-any-return]
    return aten.cudnn_convolution_add_relu(  # type: ignore[no-any-return]
        image, weight, added, 1.0, bias, stride, padding, dilation, 1
    )


FUSED_CONVOLUTION = FusedConvolution()
