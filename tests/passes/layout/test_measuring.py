"""The suite `layouts` measures what the price table assumes."""

from __future__ import annotations

import torch

from bench.layouts.convolutions import Row, measure_gradients, measure_row, rows_for_table
from compiler.devices import H200, cpu_device
from compiler.options import Timing
from compiler.passes.price import REACHED, Convolution, least_times, price_of, price_of_gradients
from compiler.runtime.timing.stopwatch import stopwatch

CPU = torch.device("cpu")
DENSE = Convolution((32, 256, 14, 14), (256, 256, 3, 3), (32, 256, 14, 14), 1, torch.bfloat16)


def test_a_row_has_both_layouts_measured_and_what_was_expected_of_them() -> None:
    row = Row(channels=8, side=6, filters=8, filter=3, groups=8)
    result = measure_row(row, 2, torch.bfloat16, CPU, cpu_device(), stopwatch(CPU), Timing(min_runs=3))
    assert result["kind"] == "depthwise" and result["precision"] == "half"
    assert result["measured_us"].keys() == {"contiguous", "channels_last"}
    assert result["predicted_us"] is None  # nothing is known of a CPU
    assert result["ratio"] == result["measured_us"]["channels_last"] / result["measured_us"]["contiguous"]
    (line,) = rows_for_table([result])
    assert line.startswith('("half", "depthwise"): Layouts(Reached(')


def test_a_transposed_row_makes_images_larger() -> None:
    row = Row(channels=8, side=6, filters=4, filter=4, stride=2, is_transposed=True)
    image, weight = row.tensors(2, torch.float32, CPU)
    assert row.call(image, weight).shape == (2, 4, 12, 12)
    result = measure_row(row, 2, torch.float32, CPU, H200, stopwatch(CPU), Timing(min_runs=3))
    assert result["kind"] == "transposed" and result["precision"] == "tf32"
    assert result["predicted_us"]["channels_last"] < result["predicted_us"]["contiguous"]
    gradients = measure_gradients(row, 2, torch.float32, CPU, H200, stopwatch(CPU), Timing(min_runs=3))
    assert gradients["kind"] == "transposed" and gradients["measured_us"].keys() == result["measured_us"].keys()


def test_the_gradients_of_a_row_are_measured_in_both_layouts_too() -> None:
    row = Row(channels=8, side=6, filters=8, filter=3)
    result = measure_gradients(row, 2, torch.bfloat16, CPU, H200, stopwatch(CPU), Timing(min_runs=3))
    assert result["kind"] == "dense" and result["measured_us"].keys() == {"contiguous", "channels_last"}
    forward = Convolution((2, 8, 6, 6), (8, 8, 3, 3), (2, 8, 6, 6), 1, torch.bfloat16)
    assert result["least_us"][0] == 2 * least_times(forward, H200)[0]
    assert result["predicted_us"] == vars(price_of_gradients(forward, H200, writes_image=True))


def test_the_fit_finds_what_the_times_were_made_of() -> None:
    for precision, kind, passes in (("half", "dense", ("", "")), ("tf32", "transposed", (", 4.0", ", 6.0"))):
        reached = REACHED[precision, kind]  # type: ignore[index]
        rows = []
        for batch, filters in ((1, 256), (32, 256), (256, 256), (256, 16)):
            image, result = (batch, *DENSE.image[1:]), (batch, filters, *DENSE.result[2:])
            dtype = torch.bfloat16 if precision == "half" else torch.float32
            convolution = Convolution(image, (256, filters, 3, 3), result, 1, dtype, kind == "transposed")
            price = price_of(convolution, H200)
            assert price is not None
            least = least_times(convolution, H200)
            rows.append({"precision": precision, "kind": kind, "measured_us": vars(price), "least_us": least})
        last, first = (
            f"Reached({one.least_us}, {one.share}{often})"
            for one, often in zip((reached.channels_last, reached.contiguous), passes, strict=True)
        )
        assert rows_for_table(rows) == [f'("{precision}", "{kind}"): Layouts({last}, {first}),']


def test_a_convolution_counts_two_operations_for_each_product() -> None:
    assert DENSE.operations == 2 * 32 * 256 * 14 * 14 * 256 * 9
    assert DENSE.sizes == (2 * 32 * 256 * 196, 2 * 256 * 256 * 9, 2 * 32 * 256 * 196)


def test_half_precision_gains_and_float64_is_not_weighed() -> None:
    half = price_of(DENSE, H200)
    assert half is not None and half.channels_last < half.contiguous
    double = Convolution(DENSE.image, DENSE.filter, DENSE.result, 1, torch.float64)
    assert price_of(double, H200) is None
