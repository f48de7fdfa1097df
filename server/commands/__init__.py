"""The commands of the command line, each a function; `server.cli` puts them together.

serving      serve, web, worker, token
exploring    explore: one file, what became of it
checking     check: whether a file still fuses as it should, for the CI of a project
differing    diff: two files or reports side by side
compiling    machine-code: one kernel of a file down to the instructions of a target
others       bench, doctor, examples
given        what several of them are given: files, options, exit codes

Heavy imports (torch, the service) happen inside the commands, so that `--help` answers at once.
"""
