"""The benchmark: Fusionscope against eager PyTorch, TorchInductor, and the least that memory allows.

cli, suite, worker, process        from the command line to processes that run cases, and may die
contest, turns                     one case with all of its contestants; one process at a time measures
patterns, functions                the suite of thirty patterns
dropout, gradients                 checking random results; forward and backward as one function
snippets, products, convolutions, random_programs, padding    suites of one file
wide/, models/, train/, opinfo/, programs/, fusion/, predictions/, layouts/, scheduling/      suites of more
service/                           the service itself: answers, a crowd, kills
page/                              the page in a browser: sizes over the wire, times, long tasks
sandbox_gpu                        whether jobs in the sandbox can use a GPU, and what they need for it
alignment                          whether TorchInductor's kernels are aligned with ours, and their lines with nodes
one_thread                         small programs and single operators by one CPU thread, beside eager mode
agreement                          kernels' times beside torch's profiler; two explorations beside each other
accelerators, ablation             what each accelerator of the compiler is worth, and each rule
conditions                         the same of each condition of the choice of tiles
explorations                       every program of the suites explored as the page would
later_calls                        whether later calls are right whose tensors lie otherwise than those of the first
extremes                           whether gradients find the maximum that they belong to, beside TorchInductor
reproducers                        each kernel of some snippets as a file of its own, run alone
table, ratios, environment         results as tables and as a picture, and what they depend on
"""
