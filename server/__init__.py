"""The service: HTTP in front, a queue behind it, one confined worker at the end.

A request becomes an exploration (`explorations.py`), which is looked up in the store (`store.py`) or put in the
queue (`jobs.py`) and run by a process of its own (`worker/`), confined by `sandbox/`. Nothing in here compiles
anything: that is the business of the `compiler` package, which knows nothing of this one.

app, routes/, security, problems      what answers, and what protects a browser and this machine
requests, identity, settings          what may be asked, which two ask for the same, what can be set
explorations, store, jobs, events     from a request to a report, and who follows it meanwhile
wire/, worker_process, verdicts       what web and worker say, the worker's other end, and what its end means
cli, doctor                           the command line
printer, summary, beside, swept       a report for a terminal, and as Markdown
captured, launches, memory, figures   the sentences and numbers of both
wrong                                 what both say first, where a result is wrong
gallery, reasons, highlight           examples, reasons and colours, for readers
logs, metrics                         for whoever runs it
"""
