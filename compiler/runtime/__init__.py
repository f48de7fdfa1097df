"""Kernels as functions: compiled, kept, launched, checked and timed.

executable                                   the wrapper with its kernels, ready to be called (flat: without a frame)
cpp_compiler, cpp_library, product_steps     C++ kernels, on a CPU (instruction_sets: for which instructions)
triton_source, triton_text, triton_compile, triton_launch      Triton kernels, on the GPU at hand
graph_launchers, preparing                   those of a graph, compiled at the same time and beside what comes next
triton_setup                                 what Triton makes once in a process
compile_helpers, compile_helper              processes that compile beside this one, and what one of them does
triton_library, device_functions             what they are linked with
triton_stages, assembler                     through what Triton takes them, and how they are assembled
triton_reading, triton_passes, product_loops what of that is left out
triton_offline, triton_interpreter           the same without a GPU: assembled, and interpreted (interpreted_text,
                                             interpreted_teams, interpreted_work)
code_texts                                   the text of each level, and the line of the source of each of its lines
disk_cache, triton_cache                     what stays on disk
launcher, quick_torch, allocator             calls that cost the host little
seeds, library_products, cublas              the same of seeds, and of the library's products of matrices
host_values                                  results of one element that the host reads while the GPU goes on
verify, judge, element_errors                is it right? Against float64, and beside eager's own error
trial, gradients, double_precision           graphs and whole calls, tried on the inputs of the snippet
rewrite_check                                a rewritten graph beside the one that Dynamo captured
wrong_results                                what the report says of wrong ones, and which times they take away
measure, stopwatch, noise, clocks            how long does it take?
kernel_times, reconcile                      each kernel alone; do they add up to the calls that launch them?
tracing                                      a call as the profiler records it
tuning                                       which way to run a product is fastest, measured
traffic, first_sizes                         what eager moves; sizes of the first call
preload                                      for a process that forks others to compile in
"""
