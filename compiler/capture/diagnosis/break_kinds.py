"""The closed list of kinds of graph breaks: what each means, and what keeps the graph whole.

Dynamo has about five hundred names for what it cannot trace, which change from release to release. A reader needs the
few causes behind them. `kind_of_break` finds the cause by words of Dynamo's name, or failing that of its explanation;
`docs/graph_breaks.md` documents each kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class BreakKind:
    """One cause of graph breaks. `words` are searched for in Dynamo's name of a break; `context` in all it says."""

    id: str
    title: str
    sentence: str
    remedy: str
    words: str
    context: str | None = None


#: In the order in which they are tried; the last one fits everything.
BREAK_KINDS: tuple[BreakKind, ...] = (
    BreakKind(
        id="explicit",
        title="an explicit break",
        sentence="The code calls torch._dynamo.graph_break() or torch._dynamo.skip_frame(), or a function of PyTorch "
        "that does, such as the step() of an optimizer.",
        remedy="Remove the call if the break is no longer needed, or call such a function of PyTorch outside the "
        "compiled function.",
        words=r"torch\._dynamo\.(graph_break|skip_frame|step_unsupported)|ComptimeContext|Forced graph break",
    ),
    BreakKind(
        id="disabled",
        title="a function kept from compilation",
        sentence="The code calls a function that torch.compiler.disable keeps from compilation.",
        remedy="Remove torch.compiler.disable from the function, or call it before or after the compiled part.",
        words=r"torch\.compiler\.disable|Forced graph break on leaf function",
    ),
    BreakKind(
        id="data_dependent_branch",
        title="control flow that depends on data",
        sentence="A branch or the order of a Python sort depends on the numbers in a tensor, which are not known while "
        "tracing.",
        remedy="Write it without a branch, as in torch.where(condition, a, b) or torch.sort, or use torch.cond.",
        words=r"[Dd]ata-dependent (branch|assert|jump)|Assertion failed on symbolic|guard_scalar branch|__bool__",
        context=r"non-constant key type: <class 'torch\.",
    ),
    BreakKind(
        id="scalar_read",
        title="a number read from a tensor",
        sentence="The value of a tensor becomes a Python number: .item(), .tolist(), int(), float().",
        remedy="Keep it a tensor, read it after the compiled function, or set "
        "torch._dynamo.config.capture_scalar_outputs = True.",
        words=r"\.item\(\)|\.tolist\(\)|Data dependent operator|non-scalar tensor|Tensor arguments$|index\(Tensor\)|"
        r"unbacked SymInt",
        context=r"_local_scalar_dense",
    ),
    BreakKind(
        id="data_dependent_shape",
        title="a size that depends on data",
        sentence="The size of a result depends on the numbers in a tensor: nonzero, unique, boolean indexing.",
        remedy="Keep the size fixed, as torch.where and masks do, or set "
        "torch._dynamo.config.capture_dynamic_output_shape_ops = True.",
        words=r"Dynamic shape operator|data-dependent output shape|Dynamic slicing",
        context=r"\baten\.(nonzero|masked_select|_?unique)",
    ),
    BreakKind(
        id="print",
        title="printing or logging",
        sentence="The code prints, logs or warns, which must happen in Python at that point.",
        remedy="Print after the compiled function, or add the function to "
        "torch._dynamo.config.reorderable_logging_functions.",
        words=r"logging\.Logger|reorder a debugging function|repr\(\) on tensor",
        context=r"operator `print`|\b(logging|warnings)\.|\bLogger\b|function `(warn|debug|info|warning|error)`",
    ),
    BreakKind(
        id="generator",
        title="a generator",
        sentence="The code runs a generator in a way that Dynamo cannot follow.",
        remedy="Make a list of what it yields before the compiled function, or write a plain loop.",
        words=r"generator(?! method)|\bSEND\b|CLEANUP_THROW|iterator to itertools|infinite",
        context=r"\bon generator\b",
    ),
    BreakKind(
        id="random_state",
        title="the state of random numbers",
        sentence="The code reads, sets or keeps the state of a generator of random numbers: manual_seed, fork_rng, "
        "get_rng_state, a torch.Generator.",
        remedy="Do it around the compiled function, whose draws follow the seed that is set there, or draw the numbers "
        "before it and pass them as an argument.",
        words=r"torch\.Generator",
        context=r"module: torch\.random\b|target: <function (fork_rng|initial_seed)>|torch\._C\.Generator",
    ),
    BreakKind(
        id="context_manager",
        title="a context manager",
        sentence="A with block that Dynamo cannot enter, or in which it cannot break.",
        remedy="Put the with statement around the compiled function, or keep what breaks out of the block.",
        words=r"context ?manager|GenericContextWrapping|contextlib|escaped from compiled region|__enter__",
    ),
    BreakKind(
        id="exception",
        title="an exception",
        sentence="The code raises or catches an exception in a way that Dynamo cannot follow.",
        remedy="Check for the case before the compiled function, so that nothing is raised within.",
        words=r"Observed exception|[Ee]xception (with|object|constructor)|raise exception|non-Exception|TypeError from|"
        r"__traceback__|tb_lasti|assert with",
    ),
    BreakKind(
        id="hook",
        title="a hook on gradients",
        sentence="The code registers a hook on gradients, or calls a module that has one, where a graph cannot hold "
        "it.",
        remedy="Register it outside of the compiled function on a parameter or an input, or write a "
        "torch.autograd.Function in its place.",
        words=r"[Hh]ook",
    ),
    BreakKind(
        id="autograd_function",
        title="a torch.autograd.Function that is not traced",
        sentence="A torch.autograd.Function does more than a graph can hold: it writes to its arguments, or has a jvp.",
        remedy="Let its forward and backward only make new tensors, or make an operator of them with "
        "torch.library.custom_op and register_autograd.",
        words=r"autograd\.Function|custom (jvp|vjp)",
    ),
    BreakKind(
        id="autograd",
        title="gradients computed inside",
        sentence="The code uses autograd in a way that a graph cannot hold: backward(), torch.autograd.grad(), a "
        "changed requires_grad.",
        remedy="Call backward() and set requires_grad outside the compiled function, and take gradients inside by "
        "torch.func.grad.",
        words=r"backward|autograd|requires_grad|retain_grad|grad_fn|functorch|jvp|vjp|gradient|"
        r"\.data. attribute|tensor data attribute",
    ),
    BreakKind(
        id="tensor_kind",
        title="a tensor of a kind that is not traced",
        sentence="A sparse, nested, quantised or subclassed tensor, or an operation on a tensor's own storage.",
        remedy="Make it a plain dense tensor before the compiled function.",
        words=r"[Ss]parse|Nested|nested_tensor|\b[Ss]ubclass|resize_|set_\(\)|Data pointer|inference|"
        r"share_memory|Uninitialized|Tensor\.(random_|uniform_)|deepcopy",
    ),
    BreakKind(
        id="numpy",
        title="NumPy",
        sentence="The code uses NumPy in a way that has no counterpart in PyTorch.",
        remedy="Use the PyTorch function of the same name, or convert before the compiled function.",
        words=r"[Nn]um[Pp]y|ndarray",
    ),
    BreakKind(
        id="operator",
        title="an operator that cannot be traced",
        sentence="A PyTorch operator failed, or has no rule for fake tensors, which torch traces with.",
        remedy="Give a custom operator a fake implementation with torch.library.register_fake, and check shapes.",
        words=r"[Ff]ake|meta kernel|PT2-compliant|op packet|running FX node|get real value|real value|out=|"
        r"Backend compiler|triton|torch\.\* op|device mismatch|dtype mismatch|broadcast|P2P|distributed|"
        r"collectives|FSDP",
    ),
    BreakKind(
        id="higher_order",
        title="a function given to a higher-order operator",
        sentence="torch.cond, torch.while_loop, torch.scan, checkpoint or a hook got a function that does what they "
        "forbid.",
        remedy="Let that function only compute from its arguments, with tensors in and tensors out.",
        words=r"HOP|[Hh]igher ?[Oo]rder|torch\.(cond|while_loop|scan|map|associative_scan)|invoke_subgraph|"
        r"wrap_with|strict_mode|strict mode|hints_wrapper|executorch",
    ),
    BreakKind(
        id="side_effect",
        title="a change to an object outside",
        sentence="The code changes an object that lives on after the call in a way that Dynamo cannot replay.",
        remedy="Return the new value and store it after the compiled function.",
        words=r"[Ss]ide[ -]?effect|[Mm]utat|STORE_ATTR|setattr|__setattr__|__setitem__|delattr|deque|assignment|"
        r"ass_item|ass_subscript|immutable cell|globals",
        context=r"operator `(setattr|delattr|setitem|delitem)`",
    ),
    BreakKind(
        id="python_feature",
        title="a part of Python that is not traced",
        sentence="A statement, a bytecode instruction or an import that Dynamo does not know how to follow.",
        remedy="Move the statement out of the compiled function, or write it in plainer Python.",
        words=r"bytecode|LOAD_|UNPACK|BUILD_|CALL_INTRINSIC|[Cc]omprehension|loop|inlined function|Import|import|"
        r"class definition|__build_class__|[Uu]ninitialized|undefined local|deleted variable|Variadic|RestartAnalysis|"
        r"cache limit|Missing CALL|super\(\)|frame builtins|closure",
        context=r"__build_class__",
    ),
    BreakKind(
        id="python_object",
        title="an object that cannot be inspected",
        sentence="An object of the snippet has attributes, a hash, an equality or a text that Dynamo cannot evaluate.",
        remedy="Pass the needed tensors and numbers to the compiled function instead of the object.",
        words=r"hash|repr|\bstr\(|getattr|__getattribute__|[Rr]econstruct|[Oo]paque|constant|non-const|user-defined|Enum|"
        r"dataclass|namedtuple|weakref|\bdict|mapping|isinstance|issubclass|__dict__|sourceless|no source|__len__|"
        r"metaclass|descriptor",
    ),
    BreakKind(
        id="c_function",
        title="a function in C, or a skipped one",
        sentence="The code calls a function written in C or C++, or one that Dynamo is set to skip.",
        remedy="Use the PyTorch or plain Python equivalent, call it outside the compiled function, or wrap it with "
        "torch.library.custom_op.",
        words=r"marked as skipped|not implemented in python|C/C\+\+|C-level|C method|Untraceable C|C extensions|"
        r"builtin operator|builtin op|jit\.|TorchScript|Script|ImperativeEngine",
    ),
    BreakKind(
        id="unsupported_call",
        title="a call that is not traced",
        sentence="The code calls a function or a method that Dynamo has no rule for.",
        remedy="Call it before or after the compiled function, or use a PyTorch function in its place.",
        words=r"[Uu]nsupported|call|method|argument|Missing|missing|not implemented|[Uu]nimplemented|kwargs|Failed to",
    ),
    BreakKind(
        id="other",
        title="something that is not traced",
        sentence="Dynamo gives its own reason, which none of the kinds above covers.",
        remedy="Follow Dynamo's hint, or move the line out of the compiled function.",
        words=r"",
    ),
)


def kind_of_break(name: str, said: str) -> BreakKind:
    """The kind of a break by Dynamo's `name` of it and by all that was `said`, its explanation and context."""
    for kind in BREAK_KINDS[:-1]:
        if re.search(kind.words, name) or (kind.context is not None and re.search(kind.context, said)):
            return kind
    return BREAK_KINDS[-1]
