"""The service: two programs, *web* in front and a confined *worker* behind. `docs/service.md` is its design.

A request becomes an exploration (`explorations`), which is found in the database (`database/`) or queued there, given
to a worker by the `dispatcher` through an executor (`executors/`), and run below `worker/` in what `sandbox/` confines.
Nothing in here compiles anything: that is the business of the `compiler` package, which knows nothing of this one.

app, web, state, supervised           web put together, what routes ask of it, its background tasks
routes/, stored_answers, negotiation,
  compressed_events, heads            what answers, and in which form
requests, problems, openapi,
  small_page                          what may be asked, what is said of a wrong request, and its description
request_context, security,
  bounded_http                        a request's id and end; what protects a browser, this machine and web itself
clients, tokens                       who asks, how much they may ask for, and the file of tokens
settings, identity, profiles          what can be set, which two ask for the same, which devices there are
explorations, dispatcher, running     from a request to a report
derived, readings, apart              what is computed from a report that may be forged, in a process of its own
watched, events                       who follows it meanwhile, and what they are told
verdicts, observed                    what a job's end means, and what the service saw itself
wire/, executors/, local_worker       what web and worker say, and who says it
passed_on, children, own_folders      what is passed on to a program that is started, its end, and temporary folders
cli, commands/, doctor                the command line
answer, printer, summary, errors, beside,
  swept                               a report on one screen, all of it for a terminal, and as Markdown
document, drawing, plain_text         the same as one HTML file, its picture, and what makes quoted text safe
captured, launches, memory, compiling,
  figures                             the sentences and numbers of all of them
wrong                                 what they say first, where a result is wrong
chrome_trace                          what the profiler recorded
gallery, reasons, glossary, highlight,
  colouring                           examples, reasons, words and colours, for readers
lessons/, report_paths                lessons, and what a question about a report is answered with
logs, metrics                         for whoever runs it
"""
