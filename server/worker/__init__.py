"""The process that runs snippets, and how the service speaks with it.

Four generations, each with one duty:

    service   sends jobs as JSON lines, checks every report that comes back
      keeper   (`keeper.py`) ends everything below it when the service or the parent is gone
        parent   (`parent.py`) has imported torch, forks, enforces time and output limits, never runs a snippet
          child   (`child.py`) is confined, runs one snippet, writes its reports to a pipe, and ends

`messages.py` is what is said between service and parent, and `job.py` watches a child from outside.
"""
