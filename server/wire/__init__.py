"""What web and worker say to each other, over a Unix socket or any other stream of bytes.

frames      one message on the stream: a bounded header, a bounded payload, backpressure
messages    the header: who the worker is, what it is asked, what became of it
parts       the payload: those parts of a report that have changed, by their names
profile     which build and which machine this is, found alike by both
probe       asks a worker how it does, for a container's health check

The worker listens, web connects. The worker speaks first (`Hello`); web answers `Welcome` or closes the connection.
After that each side sends when it has something to say. This package imports nothing else of the service.
"""
