"""What the text forms of a report say of times."""

from __future__ import annotations

from compiler.report import Environment, Kernel
from server.summary import kernel_times


def test_a_prediction_and_a_measurement_each_name_their_device() -> None:
    kernel = Kernel(name="k", kind="cpp", nodes=[], source="", predicted_us=4.1, measured_us=800.0)
    times = kernel_times(kernel, Environment(device="cpu", target="sm_90"))
    assert times == ["predicted for sm_90 4.1 µs", "measured on cpu 800 µs"]


def test_a_time_that_is_not_known_is_not_said() -> None:
    assert kernel_times(Kernel(name="k", kind="extern", nodes=[], source=""), Environment()) == []
