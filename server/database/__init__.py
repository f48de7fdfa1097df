"""What web keeps: jobs until they are done, and reports. SQLite by default, PostgreSQL by its URL.

tables      the schema, as SQLAlchemy's Core
engine      connections, transactions, and what each of the two databases needs
migrations/ alembic's, in the order of their numbers; `engine` runs them at start
compressed  a report's body as pieces of deflate that are put together without compressing anything
reports     finished explorations: written once, read as they were written
jobs        the durable queue: who waits, who runs, whose turn it is
new_jobs    what is written down for a job that is asked for, where there is room for it
retention   what is removed, by age and by size
"""
