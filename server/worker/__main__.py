"""`python -m server.worker`: started by the service only; its configuration comes as the first line of stdin."""

from server.worker.keeper import keep

raise SystemExit(keep())
