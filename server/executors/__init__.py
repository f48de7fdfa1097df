"""Where jobs run: local workers behind Unix sockets, or a cluster of Ray's. Web knows only the protocol.

protocol      what web asks of whatever runs jobs, and what it hears of them
local         workers of this machine, behind Unix sockets
ray           workers of a Ray cluster, each of which becomes such a socket
ray_gateway   the program that joins the cluster and makes the sockets
ray_bridge    the actor on each worker's machine
ray_view      what the gateway tells web
"""
