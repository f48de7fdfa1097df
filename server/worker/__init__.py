"""The program worker: it runs snippets in the sandbox for whoever connects to its socket, and watches them.

It has no network, no secrets and no database, and it never imports torch. Below it stand the zygote, which has imported
torch and forks, and the processes that snippets run in; `docs/service.md` tells of all programs.

In the worker:

    config, listening, program    what it is told, the socket, and the whole
    connections    one web: what it asks and what it is told
    zygote_start   how a zygote is started: before the worker has imported all of this
    supply         a zygote that is alive, and spares that are warm
    forker         one zygote and the processes that it forked, seen from the worker
    running        one job: its time, its output, its reports, its memory, and its end
    lease          who may time on the device
    gpu            how the GPU does, and what slows it while a job is timed
    changes        how tasks wait for each other

In the zygote and below:

    zygote         the process that forks
    snippet        the process that runs one snippet
    warming        what a spare does while it waits
    cuda_trial     which imports leave CUDA to the processes that are forked

Between them:

    channel        what worker and zygote say to each other
    records        what a snippet's process writes to the worker, and is told
"""
