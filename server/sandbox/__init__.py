"""Runs snippets that nobody trusts. It knows nothing of the compiler, of messages or of the web.

Three processes use it. The worker chooses a tier (`tiers`, by a `trial`) and watches jobs from outside (`watch`). The
zygote enters the sandbox and forks jobs (`sandbox`). Each job is confined before it runs anything (`job`).

    config, limits     what a sandbox and a job are told; allowance: what of the machine a job may see
    isolation          what differs between the tiers; namespaces is tier A, landlocked tier B
    keeper, guard      the processes above the zygote and above each job that let nothing survive
    processes          finding and ending all that a job has started; leftovers: deleting all that it has written
    measures           what processes and folders use
    control_group      a job's group of version 2, where the worker may make one
    descriptors        which descriptors a process keeps
    landlock, syscalls    what a process may do to files, and which system calls it may make
    users, code_access    a user for each job, and what of root's folders it must be able to read
    kernel             the calls that Python has no function for
"""

from server.sandbox.config import NoSandbox, SandboxConfig, code_folders
from server.sandbox.control_group import ControlGroup, ControlGroups
from server.sandbox.limits import GIB, MIB, JobLimits, begin, private_memory
from server.sandbox.sandbox import Exit, Job, Sandbox
from server.sandbox.tiers import choose_tier
from server.sandbox.watch import Usage, Watch

__all__ = [
    "GIB",
    "MIB",
    "ControlGroup",
    "ControlGroups",
    "Exit",
    "Job",
    "JobLimits",
    "NoSandbox",
    "Sandbox",
    "SandboxConfig",
    "Usage",
    "Watch",
    "begin",
    "choose_tier",
    "code_folders",
    "private_memory",
]
