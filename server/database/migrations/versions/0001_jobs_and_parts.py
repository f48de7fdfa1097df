"""Jobs that last, and reports in parts. Reports of the store that had neither are taken over, each as one piece."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from server.database.compressed import body_of_text

revision = "0001"
down_revision = None

_BATCH = 50


def upgrade() -> None:
    has_earlier_store = sa.inspect(op.get_bind()).has_table("explorations")
    if has_earlier_store:
        op.rename_table("explorations", "earlier_explorations")
    _create()
    if has_earlier_store:
        _take_over(op.get_bind())
        op.drop_table("earlier_explorations")
        op.execute("DROP TABLE IF EXISTS exploration_links")


def _create() -> None:
    op.create_table(
        "explorations",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("is_reusable", sa.Boolean, nullable=False),
        sa.Column("report_version", sa.Integer, nullable=False),
        sa.Column("build", sa.String(40), nullable=False),
        sa.Column("based_on", sa.String(40)),
        sa.Column("asked", sa.String(400), nullable=False),
        sa.Column("finished_at", sa.Float, nullable=False),
        sa.Column("last_event", sa.BigInteger, nullable=False),
        sa.Column("tag", sa.String(64), nullable=False),
        sa.Column("body_bytes", sa.BigInteger, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
        sa.Column("own_bytes", sa.BigInteger, nullable=False),
    )
    op.create_index("explorations_by_parent", "explorations", ["based_on", "finished_at"])
    op.create_index("explorations_by_age", "explorations", ["finished_at"])
    op.create_table(
        "contents",
        sa.Column("hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("piece", sa.LargeBinary, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "report_pieces",
        sa.Column("exploration", sa.String(40), sa.ForeignKey("explorations.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("place", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary(32), sa.ForeignKey("contents.hash")),
        sa.Column("inline", sa.LargeBinary),
    )
    op.create_index("report_pieces_by_content", "report_pieces", ["content"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("client", sa.String(200), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("based_on", sa.String(40)),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("build", sa.String(40), nullable=False),
        sa.Column("queued_at", sa.Float, nullable=False),
        sa.Column("wanted_at", sa.Float, nullable=False),
        sa.Column("owner", sa.String(80)),
        sa.Column("lease_until", sa.Float),
        sa.Column("deadline", sa.Float),
        sa.Column("started_at", sa.Float),
        sa.Column("wall_seconds", sa.Float),
        sa.Column("is_cancelled", sa.Boolean, nullable=False),
        sa.Column("finished_at", sa.Float),
    )
    op.create_index("jobs_in_order", "jobs", ["state", "queued_at"])
    op.create_table(
        "clients",
        sa.Column("key", sa.String(200), primary_key=True),
        sa.Column("served_at", sa.Float, nullable=False),
    )


def _take_over(connection: sa.Connection) -> None:
    """Every report of the earlier store, byte for byte: links to it keep working."""
    earlier = sa.table("earlier_explorations", *map(sa.column, ("id", "status", "finished_at", "report")))
    ids = [row.id for row in connection.execute(sa.select(earlier.c.id))]
    for first in range(0, len(ids), _BATCH):
        batch = sa.select(earlier).where(earlier.c.id.in_(ids[first : first + _BATCH]))
        for row in connection.execute(batch).all():
            _take_over_one(connection, row)


def _take_over_one(connection: sa.Connection, row: Any) -> None:
    columns = "id attempt status is_reusable report_version build based_on asked finished_at last_event tag body_bytes"
    explorations = sa.table("explorations", *map(sa.column, f"{columns} checksum own_bytes".split()))
    pieces = sa.table("report_pieces", *map(sa.column, ("exploration", "place", "content", "inline")))
    text = zlib.decompress(row.report)
    report = json.loads(text)
    body = body_of_text(text)
    inline = b"".join(piece.data for piece in body.pieces)
    asked = "; ".join(f"{told['option'].replace('_', ' ')} {', '.join(told['asked'])}" for told in report["what_if"])
    values = {
        "id": row.id,
        "attempt": 1,
        "status": row.status,
        # Ids are made of the build now, so nobody asks for these by their question any more.
        "is_reusable": row.status in ("ok", "wrong_result", "user_error"),
        "report_version": report.get("version", 1),
        "build": "",
        "based_on": report.get("based_on"),
        "asked": asked[:400],
        "finished_at": _seconds(row.finished_at),
        "last_event": len(report.get("stages", ())) + 1,
        "tag": body.tag,
        "body_bytes": body.length,
        "checksum": body.checksum,
        "own_bytes": len(inline),
    }
    connection.execute(sa.insert(explorations).values(values))
    connection.execute(sa.insert(pieces).values(exploration=row.id, place=0, content=None, inline=inline))


def _seconds(stored: str | datetime) -> float:
    moment = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
