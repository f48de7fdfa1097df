"""What alembic runs: the connection is that of `server.database.engine`, within its transaction."""

from __future__ import annotations

from alembic import context

from server.database.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
