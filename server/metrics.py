"""What the service counts, for Prometheus at /metrics. Each service has a registry of its own, so tests do too."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from server.executors.protocol import WorkerDevice
from server.wire.messages import Ended

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

GPU_GAUGES = {
    "memory_used_bytes": "Memory of the GPU that processes have.",
    "memory_total_bytes": "Memory that the GPU has.",
    "temperature_c": "Temperature of the GPU, in degrees Celsius.",
    "power_w": "What the GPU draws, in watts.",
    "busy_share": "Share of the last moments in which a kernel ran on the GPU.",
    "uncorrected_errors": "Errors of the GPU's memory that could not be corrected, since its driver was loaded.",
}
"""Figures of `GpuHealth`, by their names there."""


class Metrics:
    """The counters of one service; seconds are wall time."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.queue_depth = Gauge("fusionscope_queue_depth", "Explorations that wait.", registry=self.registry)
        self.job_seconds = Histogram(
            "fusionscope_job_seconds",
            "Time from the start of an exploration to its end, by device and status.",
            ("device", "status"),
            buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
            registry=self.registry,
        )
        self.queue_seconds = Histogram(
            "fusionscope_queue_seconds",
            "Time that an exploration waited before it was given to a worker.",
            buckets=(0.01, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
            registry=self.registry,
        )
        self.stage_seconds = Histogram(
            "fusionscope_stage_seconds",
            "Time of one stage, as the exploration itself says, by stage and device.",
            ("stage", "device"),
            buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=self.registry,
        )
        self.served_from_store = Counter(
            "fusionscope_served_from_store", "Explorations answered without running.", registry=self.registry
        )
        self.refused = Counter(
            "fusionscope_refused", "Explorations refused because the queue was full.", registry=self.registry
        )
        self.jobs = Counter(
            "fusionscope_jobs",
            "Attempts at explorations that are over, by device and how the service saw them end.",
            ("device", "ending"),
            registry=self.registry,
        )
        self.timing_wait_seconds = Histogram(
            "fusionscope_timing_wait_seconds",
            "Time that an exploration waited until it had the device for itself, to be timed.",
            ("device",),
            buckets=(0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=self.registry,
        )
        self.peak_memory_bytes = Histogram(
            "fusionscope_peak_memory_bytes",
            "Most memory that an exploration used at one time, by where.",
            ("where",),
            buckets=tuple(2.0**power for power in range(26, 38)),
            registry=self.registry,
        )
        self.requests = Counter(
            "fusionscope_requests", "Requests, by route and status.", ("route", "status"), registry=self.registry
        )
        self.request_seconds = Histogram(
            "fusionscope_request_seconds",
            "Time from a request to the end of its answer, by route; streams of events are not among them.",
            ("route",),
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 60),
            registry=self.registry,
        )
        self._add_worker_gauges()

    def _add_worker_gauges(self) -> None:
        self.worker_restarts = Gauge(
            "fusionscope_worker_restarts",
            "Times that workers, or what runs snippets in them, had to be started again.",
            registry=self.registry,
        )
        self.worker_ready = Gauge(
            "fusionscope_worker_ready", "1 while a worker can take a job.", registry=self.registry
        )
        labels = ("worker", "device", "device_name")
        self.device_ready = Gauge(
            "fusionscope_device_ready", "1 while this worker's device can be used.", labels, registry=self.registry
        )
        self.device_slots = Gauge(
            "fusionscope_device_slots", "Explorations that it runs at once.", labels, registry=self.registry
        )
        self.device_free_slots = Gauge(
            "fusionscope_device_free_slots", "Of these: how many are free.", labels, registry=self.registry
        )
        self.device_restarts = Gauge(
            "fusionscope_device_restarts", "Times that it had to be started again.", labels, registry=self.registry
        )

        self.gpus = {
            name: Gauge(f"fusionscope_gpu_{name}", description, labels, registry=self.registry)
            for name, description in GPU_GAUGES.items()
        }
        self.gpu_slowed = Counter(
            "fusionscope_gpu_slowed",
            "Explorations that were timed while the GPU was slowed, by the cause.",
            ("by",),
            registry=self.registry,
        )

    def observe_end(self, device: str, ended: Ended) -> None:
        """Counts an attempt as the worker saw it. `device` is "cpu" or "cuda"."""
        self.jobs.labels(device, ended.ending).inc()
        self.timing_wait_seconds.labels(device).observe(ended.waited_seconds)
        if ended.peak_memory_bytes is not None:
            self.peak_memory_bytes.labels("host").observe(ended.peak_memory_bytes)
        if ended.peak_gpu_memory_bytes is not None:
            self.peak_memory_bytes.labels("gpu").observe(ended.peak_gpu_memory_bytes)
        for cause in ended.gpu_while_timed.slowed_by if ended.gpu_while_timed is not None else ():
            self.gpu_slowed.labels(cause).inc()

    def observe_devices(self, devices: Sequence[WorkerDevice]) -> None:
        """Takes the workers and their devices as they are now; those that are gone are told of no more."""
        gauges = (self.device_ready, self.device_slots, self.device_free_slots, self.device_restarts)
        for gauge in (*gauges, *self.gpus.values()):
            gauge.clear()
        for one in devices:
            values = (one.ready, one.slots, one.free, one.restarts)
            for gauge, value in zip(gauges, values, strict=True):
                gauge.labels(one.name, one.profile.device, one.profile.device_name).set(value)
            told = {} if one.gpu is None else one.gpu.model_dump(include=set(GPU_GAUGES), exclude_none=True)
            for name, value in told.items():
                self.gpus[name].labels(one.name, one.profile.device, one.profile.device_name).set(value)
        self.worker_ready.set(any(one.ready for one in devices))
        self.worker_restarts.set(sum(one.restarts for one in devices))

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Counts an answered request. `route` is a pattern such as /api/v1/reasons/{id}, never an address."""
        self.requests.labels(route, status).inc()
        if not route.endswith("/events"):
            self.request_seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
