"""The service as its users and its enemies meet it: `python -m bench.service CASE ...`, over HTTP alone.

running     starts the service on a free port, reads the memory of its processes, kills them
answers     how long a request takes: to a snippet's first line, to its report, to one that is stored
crowd       many clients at once, who ask for anything; what is answered must be right
attacks     those of tests/sandbox through the real compiler; without_landlock and without_seccomp take a layer away
kills       processes are killed at random moments; what was promised must come
figures     medians and percentiles, and the file that they are kept in

Each case bounds its own number of requests and seconds, and ends what it started. Nothing but 127.0.0.1 is asked.
"""
