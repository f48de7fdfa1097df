"""What the service counts, for Prometheus at /metrics. Each service has a registry of its own, so tests do too."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
        self.worker_restarts = Gauge(
            "fusionscope_worker_restarts", "Times that the worker had to be started again.", registry=self.registry
        )
        self.worker_ready = Gauge(
            "fusionscope_worker_ready", "1 while the worker can take a job.", registry=self.registry
        )

    def text(self) -> bytes:
        return generate_latest(self.registry)
