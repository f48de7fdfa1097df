"""The names that Fusionscope takes from torch and Triton beyond their documented interfaces, as one table.

Each row says which sources may use its names and what for, and in which releases of torch they were found.
`test_torch_names.py` holds the table against the sources and against the torch that is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Releases of torch, each with the release of Triton that it comes with.
RELEASES = {"2.11": "3.6", "2.12": "3.7", "2.13": "3.7"}

EVERYWHERE = ("compiler/", "server/", "bench/")
INTERNALS = ("compiler/capture/torch_internals.py",)
TRACE = ("compiler/capture/recording/torch_trace.py",)
THIN = ("compiler/capture/shortcuts/thin_calls.py",)
SHORTER = ("compiler/capture/shortcuts/while_captured.py",)


@dataclass(frozen=True)
class Taken:
    """`names` that `sources` (files, or folders that end in /) take, to do what `need` says."""

    sources: tuple[str, ...]
    need: str
    names: tuple[str, ...]
    found_in: tuple[str, ...] = tuple(RELEASES)
    #: Whether only builds of torch for CUDA have them.
    is_of_cuda: bool = False


def _names(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


TABLE = (
    # Documented in spite of the underscore, or what every extension of torch is written with.
    Taken(
        EVERYWHERE,
        "reset and call Dynamo",
        _names("torch._dynamo", "optimize reset convert_frame.FRAME_COUNTER backends.common.aot_autograd"),
    ),
    Taken(EVERYWHERE, "tell operators apart", _names("torch._ops", "OpOverload OpOverloadPacket HigherOrderOperator")),
    Taken(EVERYWHERE, "see each operator that is called", ("torch.utils._python_dispatch.TorchDispatchMode",)),
    Taken(
        EVERYWHERE,
        "find the tensors in nested arguments",
        _names("torch.utils._pytree", "TreeSpec tree_flatten tree_leaves tree_map tree_map_only tree_unflatten"),
    ),
    # Dynamo and AOTAutograd.
    Taken(INTERNALS, "have the call of a module of torch traced", ("torch._dynamo.external_utils.wrap_inline",)),
    Taken(
        INTERNALS,
        "have `__main__` looked up for each snippet",
        _names("torch._dynamo.symbolic_convert", "_import_module _import_module.cache_clear"),
    ),
    Taken(TRACE, "name files in the trace of a compilation", ("torch._logging.structured.INTERN_TABLE",)),
    Taken(TRACE, "keep torch's log off a snippet's output", ("torch._logging._internal.handlers",)),
    Taken(
        TRACE,
        "trace without the text of AOTAutograd's metadata",
        _names("torch._functorch._aot_autograd", "graph_capture.dataclass_repr graph_compile.dataclass_repr"),
    ),
    Taken(TRACE, "show bytecode", ("torch._dynamo.convert_frame.register_bytecode_hook",)),
    Taken(TRACE, "match graphs and their traces", ("torch._guards.CompileContext.current_compile_id",)),
    Taken(THIN, "make bytecode thin", ("torch._dynamo.convert_frame.register_bytecode_hook",)),
    Taken(
        THIN,
        "know a compilation again when its code is made, and take one of its guards out",
        _names("torch._guards", "CompileContext.try_get TracingContext.try_get"),
    ),
    Taken(THIN, "keep Dynamo out of a graph", ("torch._C._dynamo.eval_frame.set_eval_frame",)),
    Taken(
        THIN,
        "see whether there are hooks on saved tensors",
        _names("torch._C._autograd", "_top_saved_tensors_default_hooks"),
    ),
    Taken(TRACE, "count graph breaks of any place", ("torch._dynamo.utils.counters",)),
    Taken(
        ("compiler/compile_phases.py",),
        "tell what Dynamo and TorchInductor took by phase",
        ("torch._dynamo.utils.compile_times",),
        ("2.13",),
    ),
    Taken(INTERNALS, "say when Dynamo gives up to recompile", ("torch._dynamo.config.recompile_limit",)),
    Taken(
        ("bench/worker.py",),
        "fail where Dynamo would go on with eager",
        ("torch._dynamo.config.fail_on_recompile_limit_hit",),
    ),
    Taken(INTERNALS, "know which options it takes", ("torch._TorchCompileInductorWrapper",)),
    Taken(INTERNALS, "let Dynamo's own signals pass", ("torch._dynamo.exc",)),
    Taken(INTERNALS, "differentiate without hooks of leaves", ("torch.Tensor._backward_hooks",)),
    Taken(INTERNALS, "keep Dynamo out of the capture machinery", ("torch._dynamo.trace_rules.add",)),
    Taken(
        INTERNALS,
        "compile a backward graph with its forward one, and have generators' states as tensors",
        _names("torch._functorch.config", "patch force_non_lazy_backward_lowering graphsafe_rng_functionalization"),
    ),
    Taken(
        INTERNALS,
        "split a joint graph into forward and backward",
        (
            "torch._functorch._aot_autograd.descriptors.InputMutationAOTOutput",
            *_names("torch._functorch.partitioners", "min_cut_rematerialization_partition get_default_op_list"),
        ),
    ),
    Taken(
        (*INTERNALS, "compiler/fx/fake_values.py"),
        "compile with values inside of AOTAutograd, and complete a graph's fake values",
        _names("torch._subclasses.fake_tensor", "unset_fake_temporarily FakeTensor FakeTensorMode"),
    ),
    Taken(
        INTERNALS,
        "tell what runs within torch.vmap or torch.func.grad",
        _names("torch._C._functorch", "peek_interpreter_stack"),
    ),
    Taken(
        ("compiler/capture/autograd/overlaps.py",),
        "tell tensors that do not tell their memory",
        _names("torch._C._functorch", "is_functorch_wrapped_tensor"),
    ),
    Taken(
        SHORTER,
        "do less while Dynamo captures: look up names, and write graphs, for a log that is on",
        (
            *_names(
                "torch._functorch._aot_autograd.graph_compile",
                "_log_joint_graph _log_fw_bw_graphs aot_joint_log aot_graphs_log",
            ),
            *_names("torch", "_dynamo.convert_frame._compile _dynamo.output_graph.trace_call_log"),
            "torch._logging._internal.trace_log",
            *_names("torch._dynamo.symbolic_convert", "get_funcname trace_call_log trace_source_log"),
            "torch._dynamo.variables.higher_order_ops.LocalMapWrappedHigherOrderVariable",
        ),
    ),
    Taken(
        SHORTER,
        "fix a float of a module until it changes",
        _names("torch._dynamo", "config.assume_static_by_default variables.builder.VariableBuilder.wrap_symfloat"),
    ),
    Taken(
        ("compiler/passes/rewrite/rewriting.py", "compiler/passes/writing.py"),
        "make a copy of a graph as Dynamo makes its own, without a text of Python where nobody reads it",
        ("torch.fx._lazy_graph_module._make_graph_module",),
    ),
    Taken(
        INTERNALS,
        "pass through AOTAutograd without TorchInductor's log of it",
        ("torch._functorch.aot_autograd.aot_module_simplified", *_names("torch._dynamo", "disable utils.counters")),
    ),
    Taken(
        ("compiler/capture/shortcuts/traced_once.py",),
        "run Dynamo's graph in place of AOTAutograd, with its tensors that see what changes them",
        (
            "torch._functorch._aot_autograd.graph_capture_wrappers.PropagateUnbackedSymInts",
            "torch._subclasses.fake_tensor.FakeTensor",
            "torch._subclasses.functional_tensor.FunctionalTensor",
            *_names("torch", "_from_functional_tensor _functionalize_mutation_counter"),
            "torch._C._get_dispatch_mode",
            "torch._C._TorchDispatchModeKey.FUNCTIONAL",
        ),
    ),
    Taken(
        INTERNALS,
        "keep writes to numbers",
        (
            "torch._dynamo.output_graph.OutputGraph.remove_tensorify_specialized_graphargs",
            "torch._dynamo.symbolic_convert.TensorifyState.should_specialize",
        ),
    ),
    Taken(
        INTERNALS,
        "take gradients with operators of ATen's or of ours",
        (
            *_names("torch._C.DispatchKey", "Autograd CompositeImplicitAutograd"),
            *_names("torch.ops.aten.add.Tensor", "py_kernels _dispatch_cache"),
        ),
    ),
    Taken(
        ("compiler/capture/autograd/running_products.py",),
        "have AOTAutograd of torch 2.11 trace another gradient",
        ("torch._C._AutoDispatchBelowAutograd",),
    ),
    Taken(
        INTERNALS,
        "tell the sizes of interpolations whose sizes are open",
        _names("torch", "_decomp.decomposition_table _decomp.decompositions.upsample_compute_output_size")
        + _names("torch._prims_common", "suggest_memory_format"),
    ),
    Taken(
        SHORTER,
        "make no tensors for states of generators that nobody has set",
        _names("torch._decomp.decompositions_for_rng.PhiloxState", "reset"),
    ),
    Taken(
        INTERNALS,
        "guard on levels of forward-mode differentiation",
        (
            "torch._dynamo.guards.GuardBuilder.DUAL_LEVEL",
            "torch._dynamo.source.GlobalStateSource",
            *_names("torch._guards", "Guard TracingContext.try_get"),
            "torch.autograd.forward_ad._current_level",
        ),
    ),
    Taken(INTERNALS, "see whether a call asks for gradients", ("torch.autograd._engine_run_backward",)),
    Taken(
        INTERNALS,
        "close the levels of torch.func's transforms that a failed run left open",
        (
            *_names("torch._C._functorch", "get_dynamic_layer_stack_depth TransformType peek_interpreter_stack"),
            *_names("torch._C._functorch", "_vmap_decrement_nesting _grad_decrement_nesting _jvp_decrement_nesting"),
            "torch._C._functorch._func_decrement_nesting",
            "torch._C._exit_dual_level",
        ),
    ),
    Taken(INTERNALS, "have guards of torch 2.11 look at weights", ("torch._dynamo.config.patch",)),
    Taken(SHORTER, "time guards quickly", ("torch._dynamo.guards.profile_guard_manager",)),
    Taken(SHORTER, "make metrics short", ("torch._dynamo.utils._scrubbed_inductor_config_for_logging",)),
    Taken(
        INTERNALS,
        "read guards",
        (
            *_names("torch._dynamo.types.GuardFilterEntry", "guard_type has_value value orig_guard"),
            *_names("torch._guards.Guard", "name code_list user_stack obj_weakref"),
        ),
    ),
    Taken(
        INTERNALS,
        "know what AOTAutograd does around a graph at each call",
        (
            "torch._guards.TracingContext.try_get",
            *_names("torch._C", "_is_any_autocast_enabled _set_grad_enabled"),
            "torch.utils._python_dispatch.is_traceable_wrapper_subclass",
        ),
    ),
    Taken(
        INTERNALS,
        "know which inputs a graph writes to",
        ("torch._guards.TracingContext.try_get",),
    ),
    Taken(
        INTERNALS,
        "run complex numbers outside of AOTAutograd's mode",
        _names("torch.utils._python_dispatch", "_get_current_dispatch_mode _pop_mode_temporarily"),
    ),
    Taken(
        INTERNALS,
        "know that mode, where torch has it",
        ("torch._functorch._aot_autograd.runtime_wrappers._AnalyzeCustomOpInputOutputMode",),
        found_in=("2.13",),
    ),
    Taken(INTERNALS, "tell a default device from none", ("torch.utils._device.CURRENT_DEVICE",)),
    Taken(
        INTERNALS,
        "make tensors on the default device in compiled code",
        ("torch.utils._device._device_constructors", "torch._dynamo.variables.torch.get_overridable_functions"),
    ),
    Taken(
        INTERNALS,
        "tell on which device a call makes its tensors",
        ("torch.overrides._get_current_function_mode_stack", "torch.utils._device.DeviceContext"),
    ),
    Taken(
        ("server/worker/channel.py",), "load what every job needs before the first", ("torch._functorch.aot_autograd",)
    ),
    # Operators: decompositions, rules of promotion, formulas of sizes.
    Taken(
        ("compiler/lowering/decompositions.py",),
        "take operators apart",
        _names("torch", "_decomp.core_aten_decompositions _decomp.get_decompositions _export.utils"),
    ),
    Taken(
        ("compiler/lowering/promotion.py",),
        "compute in eager's dtypes",
        _names("torch._prims_common", "ELEMENTWISE_TYPE_PROMOTION_KIND elementwise_dtypes"),
    ),
    Taken(
        ("compiler/lowering/tree_calls.py", "compiler/lowering/user_kernels.py"),
        "find the Triton kernels that a snippet launches, and launch them alone",
        (
            *_names("torch._higher_order_ops.triton_kernel_wrap", "kernel_side_table triton_kernel_wrapper_mutation"),
            "torch._prims_common.clone_preserve_strides",
        ),
    ),
    Taken(
        ("compiler/lowering/printed_formulas.py",),
        "print formulas of sizes as Python",
        ("torch.utils._sympy.printers.PythonPrinter",),
    ),
    Taken(
        ("compiler/capture/shortcuts/formulas_once.py",),
        "make the formula of equal sizes once",
        _names("torch.fx.experimental", "proxy_tensor sym_node.SymNode"),
    ),
    Taken(
        ("compiler/lowering/eager.py", "compiler/lowering/guarded_sizes.py"),
        "read formulas of sizes",
        _names("torch.utils._sympy.functions", "CleanDiv FloorDiv Max Min Mod PythonMod ToFloat TruncToInt"),
    ),
    Taken(("compiler/passes/rewrite/calls.py",), "tell builtin functions of torch apart", ("torch._C._nn",)),
    # Launching and timing.
    Taken(
        ("compiler/runtime/host/quick_torch.py",),
        "allocate, view and find addresses as torch's own compiled code does",
        ("torch._C._dynamo.guards",),
    ),
    Taken(
        ("compiler/replay/held.py",),
        "tell when nobody has any more what a replay gave without a copy",
        ("torch._C._storage_Use_Count",),
    ),
    Taken(("compiler/replay/outputs.py",), "copy many tensors by one call", ("torch._foreach_copy_",)),
    Taken(
        (
            "compiler/runtime/triton/launch.py",
            "compiler/replay/recorder.py",
            "compiler/runtime/host/library_products.py",
        ),
        "launch on the current stream",
        ("torch._C._cuda_getCurrentRawStream",),
        is_of_cuda=True,
    ),
    Taken(
        ("compiler/runtime/host/cublas.py",),
        "ask whether products of float32 may round their operands",
        ("torch._C._get_fp32_precision_getter",),
    ),
    Taken(
        ("compiler/runtime/timing/stopwatch.py", "bench/ablation.py", "bench/agreement.py"),
        "hold the stream while calls are queued",
        ("torch.cuda._sleep",),
    ),
    # Triton.
    Taken(
        ("compiler/runtime/triton/device_functions.py",),
        "take functions out of libdevice",
        (
            "triton.knobs",
            "triton.backends.nvidia.compiler",
            *_names("triton._C.libtriton", "ir nvidia llvm"),
        ),
    ),
    Taken(
        ("compiler/runtime/triton/stages.py",),
        "start the assembler with Triton's own settings before it has the text",
        (
            *_names("triton.knobs", "compilation.disable_line_info nvidia.disable_ptxas_opt nvidia.dump_ptxas_log"),
            *_names("triton.backends.nvidia.compiler", "get_ptxas sm_arch_from_capability"),
        ),
    ),
    Taken(
        ("compiler/runtime/triton/compile_helper.py", "compiler/runtime/triton/compile_helpers.py"),
        "have another process find the same key for a kernel",
        (
            *_names("triton.backends.nvidia", "compiler compiler.get_ptxas_version"),
            *_names("triton.runtime", "cache cache.triton_key"),
        ),
    ),
    Taken(
        ("compiler/runtime/triton/source.py",),
        "tell Triton of a descriptor",
        ("triton.tools.tensor_descriptor.TensorDescriptor",),
    ),
    Taken(
        ("compiler/runtime/triton/cache.py",),
        "keep compiled kernels within bounds, and only whole ones",
        ("triton.knobs", "triton.runtime.cache.FileCacheManager"),
    ),
    Taken(
        ("compiler/runtime/triton/setup.py",),
        "have what Triton makes once made while other passes run",
        (
            *_names("triton.backends.nvidia", "compiler compiler.get_ptxas_version"),
            *_names("triton.runtime", "cache cache.triton_key driver"),
        ),
    ),
    Taken(
        ("compiler/runtime/triton/compile.py",),
        "load a kernel without a launcher of Triton's",
        ("triton.runtime.driver",),
    ),
    Taken(
        (
            *("compiler/runtime/triton/offline.py", "compiler/runtime/triton/compile_helper.py"),
            "compiler/runtime/triton/targets.py",
            "compiler/machine_code/triton.py",
        ),
        "compile a kernel for a GPU that is not there",
        ("triton.backends.compiler.GPUTarget", "triton.compiler.ASTSource"),
    ),
    Taken(
        ("compiler/runtime/triton/targets.py",),
        "tell Triton's library which GPU that is",
        ("triton.language.target_info.current_target",),
    ),
    Taken(
        (
            *("compiler/runtime/interpreter/interpreter.py", "compiler/runtime/interpreter/work.py"),
            "compiler/runtime/interpreter/text.py",
        ),
        "run kernels on a CPU",
        (
            "triton.runtime.jit.JITFunction",
            *_names(
                "triton.runtime.interpreter",
                "InterpretedFunction InterpreterBuilder.cast_impl InterpreterBuilder.create_atomic_rmw "
                "ReduceOps ScanOps TensorHandle.__post_init__ interpreter_builder.options "
                "interpreter_semantic.to_tensor _get_np_dtype _implicit_cvt _patch_lang _LangPatchScope",
            ),
        ),
    ),
    # What a snippet may have changed is set aside while its results are judged and timed.
    Taken(
        ("compiler/capture/captured.py", "compiler/runtime/checking/verify.py"),
        "take tensors without the functions of their classes",
        _names("torch._C", "DisableTorchFunction TensorBase TensorBase.detach"),
    ),
    Taken(
        ("compiler/snippet_changes.py",),
        "take modes away that a snippet has left, and put them back",
        (
            *_names("torch._C", "_len_torch_function_stack _pop_torch_function_stack _push_on_torch_function_stack"),
            *_names("torch._C", "_len_torch_dispatch_stack _pop_torch_dispatch_stack _push_on_torch_dispatch_stack"),
            "torch.utils._device.DeviceContext",
        ),
    ),
    Taken(
        ("server/worker/warming.py",),
        "forget the program that a spare has tried",
        _names("torch._dynamo", "bytecode_transformation utils.counters.clear"),
    ),
    # What stands beside us: TorchInductor, and torch's own samples of its operators.
    Taken(
        ("compiler/peer/",),
        "compile with TorchInductor, and hear what it generates",
        (
            *_names("torch._functorch.config", "patch enable_autograd_cache force_non_lazy_backward_lowering"),
            *_names("torch._inductor", "list_mode_options compile_fx.compile_fx graph.GraphLowering.save_output_code"),
            *_names("torch._inductor.config", "patch cpp_cache_precompile_headers fx_graph_cache"),
            *_names("torch._inductor.virtualized", "V.graph"),
            "torch._inductor.debug.set_kernel_post_grad_provenance_tracing",
        ),
    ),
    Taken(
        ("compiler/peer/inductor.py",),
        "hear why it does not fuse, and build its kernels while it generates the next",
        (
            "torch._inductor.scheduler",
            *_names("torch._inductor.async_compile.AsyncCompile", "pool pool.cache_clear pool.cache_info wait"),
        ),
        ("2.13",),
    ),
    Taken(
        ("compiler/peer/contestants.py", "compiler/capture/torch_internals.py"),
        "find the backends of Dynamo that are installed",
        _names("torch._dynamo", "list_backends backends.registry.lookup_backend"),
        ("2.13",),
    ),
    Taken(
        ("compiler/peer/kernel_text.py",),
        "compile one of TorchInductor's kernels as it does",
        _names(
            "torch._inductor",
            "cpp_builder.CppTorchDeviceOptions cpu_vec_isa.pick_vec_isa runtime.triton_helpers",
        ),
        ("2.13",),
    ),
    Taken(
        ("compiler/runtime/preload.py",),
        "import for all forked processes what their first use imports",
        ("torch.distributed.tensor.experimental._func_map", "triton.compiler.code_generator"),
        ("2.13",),
    ),
    Taken(("bench/alignment.py",), "hear what it generates", ("torch._inductor.graph.GraphLowering.save_output_code",)),
    Taken(("bench/later_calls.py",), "leave a size open", ("torch._dynamo.maybe_mark_dynamic",)),
    Taken(("bench/contest.py",), "time a compilation without a cache", ("torch._inductor.utils.fresh_cache",)),
    Taken(
        ("bench/opinfo/packets.py",),
        "know what TorchInductor lowers itself",
        _names("torch._inductor.lowering", "lowerings fallbacks"),
    ),
    Taken(
        ("bench/opinfo/",),
        "have torch's samples of its operators, and the tolerances of its tests",
        _names("torch.testing", "_comparison.default_tolerances _internal"),
    ),
    Taken(
        ("bench/programs/compiled.py",),
        "capture a program without Dynamo, and have Dynamo raise where it would give up",
        ("torch._functorch.aot_autograd.aot_function", "torch._dynamo.config.patch"),
    ),
    Taken(("bench/",), "make a graph without memory", ("torch._subclasses.fake_tensor.FakeTensorMode",)),
    Taken(
        ("bench/fusion/pretended_gpu.py",),
        "pretend a GPU",
        (
            *_names("torch._dynamo.device_interface.CudaInterface", "is_available Worker.current_device"),
            *_names("triton", "backends.compiler.GPUTarget runtime.driver.set_active"),
        ),
    ),
    Taken(
        ("bench/fusion/peer.py",),
        "count TorchInductor's kernels",
        (
            "torch._functorch.config.patch",
            *_names("torch._inductor", "config.patch graph.GraphLowering scheduler.NopKernelSchedulerNode"),
            "torch._inductor.virtualized.V.set_graph_handler",
        ),
    ),
)
