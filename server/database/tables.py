"""The schema. Times are seconds since 1970 by the clock of the web that wrote them: the clocks of webs that share a
database may differ by a few seconds, which is much less than a lease."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

metadata = MetaData()

explorations = Table(
    "explorations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("attempt", Integer, nullable=False, comment="Which attempt wrote the report."),
    Column("status", String(20), nullable=False),
    Column("is_reusable", Boolean, nullable=False, comment="Whether the same question may be answered with it."),
    Column("report_version", Integer, nullable=False),
    Column("build", String(40), nullable=False),
    Column("based_on", String(40)),
    Column("asked", String(400), nullable=False, comment="What a what-if asks, in words."),
    Column("finished_at", Float, nullable=False),
    Column("last_event", BigInteger, nullable=False, comment="Number of the event that told of the end."),
    Column("tag", String(64), nullable=False, comment="Hash of the body."),
    Column("body_bytes", BigInteger, nullable=False),
    Column("checksum", BigInteger, nullable=False, comment="CRC-32 of the body, for the trailer of gzip."),
    Column("own_bytes", BigInteger, nullable=False, comment="Compressed, without the contents that may be shared."),
)
Index("explorations_by_parent", explorations.c.based_on, explorations.c.finished_at)
Index("explorations_by_age", explorations.c.finished_at)

contents = Table(
    "contents",
    metadata,
    Column("hash", LargeBinary(32), primary_key=True, comment="SHA-256 of the part, not compressed."),
    Column("piece", LargeBinary, nullable=False),
    Column("bytes", BigInteger, nullable=False, comment="Length of the piece."),
)

pieces = Table(
    "report_pieces",
    metadata,
    Column("exploration", String(40), ForeignKey("explorations.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("content", LargeBinary(32), ForeignKey("contents.hash")),
    Column("inline", LargeBinary, comment="A piece that is too short to be shared."),
)
Index("report_pieces_by_content", pieces.c.content)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(40), primary_key=True, comment="The exploration's."),
    Column("state", String(10), nullable=False, comment="queued, leased or done."),
    Column("attempt", Integer, nullable=False, comment="The one that runs, or is next: it never counts down."),
    Column("tries", Integer, nullable=False, comment="Attempts at this request, the one that runs or is next too."),
    Column("client", String(200), nullable=False, comment="Who asked, for fairness."),
    Column("source", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("based_on", String(40)),
    Column("profile", Text, nullable=False, comment="The device that it must run on, as JSON."),
    Column("build", String(40), nullable=False),
    Column("queued_at", Float, nullable=False),
    Column("wanted_at", Float, nullable=False, comment="When somebody was last seen to wait for it."),
    Column("owner", String(80), comment="The web that has the lease."),
    Column("lease_until", Float),
    Column("deadline", Float, comment="When web gives up this attempt, whatever the worker says."),
    Column("started_at", Float),
    Column("wall_seconds", Float),
    Column("is_cancelled", Boolean, nullable=False, comment="That it should end, wherever it is."),
    Column("finished_at", Float),
)
Index("jobs_in_order", jobs.c.state, jobs.c.queued_at)

clients = Table(
    "clients",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("served_at", Float, nullable=False, comment="When a job of theirs was last taken."),
)
