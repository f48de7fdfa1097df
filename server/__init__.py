"""The service, two programs: web answers requests and keeps what came of them, worker runs snippets, confined.

A request becomes an exploration (`explorations`), which is found in the database or written down as a job, taken by the
`dispatcher`, run by an executor, and stored. docs/service.md tells the whole way. Nothing in here compiles anything:
that is the business of the `compiler` package, which knows nothing of this one.

app, web, state, routes/              what answers, how it is put together, and what routes ask for
security, clients, tokens             what protects a browser and this machine, who asks, and how much they may
request_context, problems, openapi    a request's id, what is said when something is wrong, the API's description
requests, identity, profiles          what may be asked, which two ask for the same, and on which device it runs
explorations, stored_answers          asking and finding again; reports that are given from memory
database/                             jobs and reports, as they last
dispatcher, watched, running          jobs on their way, who follows them, and their reports as they grow
events, observed, verdicts            what followers are told, what was seen, and what became of it
supervised, local_worker              background tasks that do not end, and the worker that serve starts
executors/, wire/                     where jobs run, and what web and worker say to each other
worker/, sandbox/                     the program that runs snippets, and what confines them
settings, cli, doctor                 what can be set, the command line, and what is wrong with this machine
printer, summary, beside, swept       a report for a terminal, and as Markdown
captured, launches, memory, figures   the sentences and numbers of both
wrong, plain_text                     what both say first where a result is wrong, and texts made safe
gallery, reasons, highlight           examples, reasons and colours, for readers
logs, metrics                         for whoever runs it
"""
