"""Where jobs run: a local worker behind a Unix socket, or a cluster of Ray's. Web knows only the protocol.

protocol   what web asks of whatever runs jobs, and what it hears of them
"""
