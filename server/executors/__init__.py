"""Where jobs run: local workers behind Unix sockets, or a cluster of Ray's. Web knows only the protocol.

protocol   what web asks of whatever runs jobs, and what it hears of them
local      workers of this machine
"""
