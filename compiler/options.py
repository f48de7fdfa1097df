"""One frozen `Options`: everything an exploration can be asked to do differently.

Every stage receives it whole and reads what concerns it; nothing else configures the compiler. Its JSON form,
together with the snippet and the versions, is what an exploration's id is a hash of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from compiler.wording import said_of_fault

Mode = Literal["default", "reduce-overhead", "max-autotune"]
StageName = Literal["capture", "lower", "schedule", "codegen", "run", "measure", "compare"]


class InputSpec(BaseModel):
    """One tensor input of a lone function: `shape` in elements, `dtype` by torch's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: tuple[int, ...] = Field(description="Sizes, outermost first. () is a scalar tensor.", examples=[(64, 128)])
    dtype: str = Field(default="float32", description="torch dtype name, such as float32, bfloat16, int64, bool.")
    low: int = Field(default=0, ge=-(2**63), lt=2**63, description="Smallest value of an integer input.")
    high: int = Field(default=10, ge=-(2**63), lt=2**63, description="One past the largest value of an integer input.")


class Timing(BaseModel):
    """How times are taken."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=True, description="Whether anything is timed.")
    cold_l2: bool = Field(default=True, description="Whether the L2 cache of a GPU is cleared before each sample.")
    min_runs: int = Field(default=20, ge=3, le=1000, description="Interleaved samples for each contestant.")
    max_seconds: float = Field(default=2.0, gt=0, le=60, description="Sampling stops after this many seconds.")


#: No memory holds as many elements.
LARGEST_SIZE = 2**40
#: Sizes that one sweep may have: with the snippet itself they must fit into the time of one exploration.
MOST_SWEPT = 16


class Sweep(BaseModel):
    """A size of the snippet, and the values that it is to be explored at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1,
        max_length=200,
        description="A whole number assigned at top level (`N`), a dimension of an annotated argument (`x.shape[0]`) "
        "or of an input of the request (`inputs[0].shape[1]`), or a number wherever it is written "
        "(`4096`). Several names with commas between them take the same value.",
    )
    values: tuple[int, ...] = Field(
        min_length=2, max_length=MOST_SWEPT, description="Different whole numbers, explored in ascending order."
    )
    max_seconds: float = Field(
        default=45.0,
        gt=0,
        le=600,
        description="A size that is expected to end later than this after the exploration began is not measured.",
    )

    @field_validator("values")
    @classmethod
    def _ascending(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(values)) < len(values):
            raise ValueError("each size may stand in a sweep once")
        if any(not 0 <= value < LARGEST_SIZE for value in values):
            raise ValueError("a size is a whole number from 0 up to 2 ** 40")
        return tuple(sorted(values))


#: Triton's names of the elements of each dtype of torch. It takes those of eight bits that round for bytes.
ELEMENTS = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "i1",
}
#: What an input may be of.
INPUT_DTYPES = (*ELEMENTS, "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")


#: What a kernel can be compiled for without a device. LLVM ends the process for any other.
CODE_TARGETS = (
    *("sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "sm_121"),
    *("gfx942", "host"),
)


def _known_code_target(name: str) -> str:
    if name not in CODE_TARGETS:
        raise ValueError(f"there is no target {name[:40]!r}; there are {', '.join(CODE_TARGETS)}")
    return name


CodeTarget = Annotated[
    str, AfterValidator(_known_code_target), WithJsonSchema({"type": "string", "enum": list(CODE_TARGETS)})
]


#: What Triton is told of a launch beside the kernel's own arguments.
LAUNCH_OPTIONS = ("num_warps", "num_stages", "maxnreg", "enable_fp_fusion")


class KernelArgument(BaseModel):
    """What a Triton kernel gets in one position of its argument list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str = Field(
        max_length=64,
        pattern=r"^[\w*\[\], <>]+$",
        description="The type as Triton writes it, such as *fp32, i64 or tensordesc<fp16[64, 64]>.",
        examples=["*fp32"],
    )
    is_divisible: bool = Field(default=False, description="Whether an address or a number is a multiple of 16.")


class KernelToCompile(BaseModel):
    """A kernel that the source holds, and what to compile it for. The source is then no snippet: nothing is captured
    or run, and `machine_code` of the report is what came of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(max_length=200, pattern=r"^[A-Za-z_]\w*$", description="The function's name.")
    language: Literal["triton", "cpp", "inductor"] = Field(
        default="triton",
        description='"inductor" is a text of TorchInductor: a module with Triton in it or, for the host, C++.',
    )
    target: CodeTarget = Field(default="sm_90", description='A GPU, such as sm_90 or gfx942. "host" is for C++.')
    arguments: tuple[KernelArgument, ...] = Field(
        default=(), max_length=512, description="Arguments of a Triton kernel."
    )
    constants: dict[str, int] = Field(default_factory=dict, description="Values of its constexpr arguments.")
    launch: dict[str, int] = Field(
        default_factory=dict,
        description=f"Triton's options: {', '.join(LAUNCH_OPTIONS)}.",
        examples=[{"num_warps": 4}],
    )

    @field_validator("launch")
    @classmethod
    def _known_launch(cls, launch: dict[str, int]) -> dict[str, int]:
        unknown = sorted(set(launch) - {*LAUNCH_OPTIONS, "debug"})
        if unknown:
            raise ValueError(f"there is no option {unknown[0]!r} of a launch; there are {', '.join(LAUNCH_OPTIONS)}")
        return launch


#: The rules of fusion, which `rules_off` and the knob `disable` may name.
FUSION_KINDS = (
    "vertical",
    "inline",
    "horizontal",
    "across",
    "epilogue",
    "library_epilogue",
    "prologue",
    "shared_operand",
    "batch",
    "recompute",
    "parts",
)
#: What else it may name: ways to run one kernel, and passes over the graph.
PASSES = ("single_pass", "team", "layout", "folding", "padding", "bias", "patches", "depthwise")
#: All of them: the one list, which the API serves to the page.
RULES = (*FUSION_KINDS, *PASSES)
#: The most loop nodes in a kernel, where `largest_group` and the knob `most_nodes` ask for nothing else.
LARGEST_GROUP = 512

#: The devices that there is a model of, as `compiler.devices.device_for` knows them. Listed here as well, since that
#: module loads torch and this one does not.
DEVICE_MODELS = ("H200", "H100", "A100", "RTX 4090", "B200", "T4", "cpu")
#: The targets of these.
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100")

NodeName = Annotated[str, Field(min_length=1, max_length=200)]
#: How a contestant may be named; who there is depends on what is installed.
ContestantName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z][\w-]*$")]
#: Two nodes, each named as a loop, as a node of either FX graph, or as a kernel.
NodePair = tuple[NodeName, NodeName]
#: More pairs than this are no question about single fusions any more.
MOST_ASKED_PAIRS = 64


class Options(BaseModel):
    """What one exploration is asked to do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: str | None = Field(
        default=None, description="Name of the function or module to explore.", examples=["model"]
    )
    inputs: tuple[InputSpec, ...] | None = Field(
        default=None,
        description="Inputs of a lone function, in order.",
        examples=[[{"shape": [64, 128], "dtype": "bfloat16"}]],
    )
    device: str | None = Field(
        default=None, description='"cpu" or "cuda". The default is the GPU if there is one.', examples=["cpu"]
    )
    target: str = Field(
        default="sm_90",
        description=f"GPU that Triton kernels are generated for if no GPU is present: {', '.join(TARGETS)}.",
    )
    peer: bool = Field(default=False, description="Also compile and time with TorchInductor.")
    peer_mode: Mode | None = Field(default=None, description="TorchInductor's mode. The default is that of `mode`.")
    peer_seconds: float = Field(
        default=60.0,
        gt=0,
        le=600,
        description="Seconds that TorchInductor, and each other contestant, may take to compile and be checked.",
    )
    contestants: tuple[ContestantName, ...] = Field(
        default=(),
        max_length=8,
        description="Who else is timed: inductor-default, inductor-reduce-overhead, inductor-max-autotune, aot_eager, "
        "or a backend of torch._dynamo.list_backends(), such as cudagraphs.",
        examples=[["aot_eager", "inductor-max-autotune"]],
    )
    training: bool | None = Field(default=None, description="Capture the backward graph. By default if one is needed.")
    dynamic: bool | None = Field(
        default=None,
        description="Sizes that graphs leave open: all, none, or by default those that change from call to call.",
    )
    mode: Mode = Field(
        default="default",
        description="A mode of torch.compile. reduce-overhead replays launches, max-autotune times products.",
    )
    cuda_graphs: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Replay the launches of a graph as one CUDA graph: if its first calls show that it pays, if it is "
        'legal, or never. The mode "reduce-overhead" turns "auto" into "on". See docs/cuda_graphs.md.',
    )
    knobs: dict[str, Any] = Field(
        default_factory=dict, description="Knobs of the scheduler. See docs/knobs.md.", examples=[{"tf32": True}]
    )
    force: tuple[NodePair, ...] = Field(
        default=(),
        max_length=MOST_ASKED_PAIRS,
        description="Pairs of nodes to fuse if that is legal, even if it does not pay.",
        examples=[[("sin", "sum_1")]],
    )
    forbid: tuple[NodePair, ...] = Field(
        default=(), max_length=MOST_ASKED_PAIRS, description="Pairs of nodes to keep in different kernels."
    )
    rules_off: tuple[str, ...] = Field(
        default=(), description="Ids of fusion rules that are not used.", examples=[["vertical"]]
    )
    largest_group: int | None = Field(default=None, ge=1, description="The most loop nodes in a kernel (512).")
    device_model: str | None = Field(
        default=None,
        description="Device whose model predicts and decides, such as A100. By default the one that kernels are for.",
        examples=["A100"],
    )
    produce: tuple[StageName, ...] | None = Field(default=None, description="The wanted stages. The default is all.")
    timing: Timing = Field(default=Timing(), description="How times are taken.")
    trace: bool = Field(
        default=False,
        description="Record one call of eager and one of each graph's kernels by torch's profiler. See `.trace.json`.",
    )
    max_seconds: float | None = Field(
        default=None,
        gt=0,
        le=86400,
        description="Seconds that the whole exploration may take. Checks and times that would end later are left out, "
        "with a note. The service allows no more than nine tenths of its `wall_seconds`.",
    )
    sweep: Sweep | None = Field(
        default=None,
        description="Explore the snippet at several values of one of its sizes.",
        examples=[{"name": "N", "values": [256, 4096]}],
    )
    machine_code: KernelToCompile | None = Field(
        default=None, description="Compile one kernel of the source down to machine code, and do nothing else."
    )
    # torch takes no others.
    seed: int = Field(default=0, ge=-(2**63), lt=2**64, description="Seed set before the snippet runs.")

    @field_validator("device")
    @classmethod
    def _known_device(cls, name: str | None) -> str | None:
        if name is not None and re.fullmatch(r"cpu|cuda(:\d{1,2})?", name) is None:
            raise ValueError(f"there is no device {name[:40]!r}; there are cpu and cuda")
        return name

    @field_validator("inputs")
    @classmethod
    def _can_be_made(cls, inputs: tuple[InputSpec, ...] | None) -> tuple[InputSpec, ...] | None:
        for position, one in enumerate(inputs or ()):
            if one.dtype not in INPUT_DTYPES:
                known = ", ".join(INPUT_DTYPES)
                raise ValueError(f"input {position} has the dtype {one.dtype[:40]!r}, which is none of {known}")
            if any(not 0 <= size < LARGEST_SIZE for size in one.shape):
                raise ValueError(f"input {position} has a size that is not from 0 up to 2 ** 40")
            if one.low >= one.high:
                raise ValueError(f"input {position} has no value: low, {one.low}, must be below high, {one.high}")
        return inputs

    @field_validator("target")
    @classmethod
    def _known_target(cls, name: str) -> str:
        if name not in TARGETS:
            raise ValueError(f"there is no target {name[:40]!r}; there are {', '.join(TARGETS)}")
        return name

    @field_validator("knobs")
    @classmethod
    def _known_knobs(cls, knobs: dict[str, Any]) -> dict[str, Any]:
        """A misspelt knob would otherwise change nothing and say nothing."""
        unknown = sorted(set(knobs) - {"most_nodes", "disable", "tf32"})
        if unknown:
            raise ValueError(f"there is no knob {unknown[0]!r}; the knobs are most_nodes, disable and tf32")
        if not isinstance(knobs.get("tf32", False), bool):
            raise ValueError(f"tf32 must be true or false, not {knobs['tf32']!r}")
        most_nodes = knobs.get("most_nodes", 1)
        if not isinstance(most_nodes, int) or isinstance(most_nodes, bool) or most_nodes < 1:
            raise ValueError(f"most_nodes must be a whole number of at least 1, not {most_nodes!r}")
        kinds = knobs.get("disable", ())
        if not isinstance(kinds, list | tuple) or any(kind not in RULES for kind in kinds):
            raise ValueError(f"disable must be a list of {', '.join(RULES)}, not {kinds!r}")
        return knobs

    @field_validator("rules_off")
    @classmethod
    def _known_rules(cls, rules: tuple[str, ...]) -> tuple[str, ...]:
        kinds = tuple(dict.fromkeys(rule.removeprefix("fused.") for rule in rules))
        unknown = [kind for kind in kinds if kind not in RULES]
        if unknown:
            raise ValueError(f"there is no rule {unknown[0]!r}; the rules are {', '.join(RULES)}")
        return kinds

    @field_validator("device_model")
    @classmethod
    def _known_model(cls, name: str | None) -> str | None:
        if name is None:
            return None
        found = next((known for known in DEVICE_MODELS if known.lower() == name.strip().lower()), None)
        if found is None:
            raise ValueError(f"there is no model of a device {name!r}; there are {', '.join(DEVICE_MODELS)}")
        return found

    @model_validator(mode="after")
    def _directives_agree(self) -> Options:
        for name, pairs in (("force", self.force), ("forbid", self.forbid)):
            same = next((a for a, b in pairs if a == b), None)
            if same is not None:
                raise ValueError(f"{name} names {same!r} twice: a pair is two nodes")
        forced = {frozenset(pair) for pair in self.force}
        both = next((pair for pair in self.forbid if frozenset(pair) in forced), None)
        if both is not None:
            raise ValueError(f"{both[0]} and {both[1]} are to be fused by `force` and kept apart by `forbid`")
        return self

    @classmethod
    def named(cls, asked: Mapping[str, Any]) -> Options:
        """Those that a program asks for by name. Raises `ValueError`, which names the option and what is wrong with it;
        for a misspelt name it lists what exists."""
        unknown = [name for name in asked if name not in cls.model_fields]
        if unknown:
            raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(asked)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            said = said_of_fault(first)
            raise ValueError(f"the option {name} cannot be {first['input']!r:.100}: {said}" if name else said) from None

    @property
    def replays(self) -> Literal["auto", "on", "off"]:
        """Whether launches are replayed: what `cuda_graphs` says, or what the mode means where that leaves it open."""
        return "on" if self.mode == "reduce-overhead" and self.cuda_graphs == "auto" else self.cuda_graphs

    def without_what_if(self) -> Options:
        """Those of the exploration that a "what if" is compared with: nothing asks for other decisions."""
        names = ("force", "forbid", "rules_off", "largest_group", "device_model")
        return self.model_copy(update={name: Options.model_fields[name].default for name in names})

    @property
    def is_what_if(self) -> bool:
        """Whether any option asks for other decisions."""
        return self.without_what_if() != self

    @property
    def disabled_rules(self) -> frozenset[str]:
        """What `rules_off` and the knob `disable` turn off."""
        return frozenset((*self.rules_off, *self.knobs.get("disable", ())))

    @property
    def takes_tf32(self) -> bool:
        """Whether a faster layout of float32 convolutions may have the library round to TF32 where it would not."""
        return bool(self.knobs.get("tf32", False))

    @property
    def most_nodes(self) -> int | None:
        """The largest group that `largest_group` or the knob `most_nodes` allows, the smaller where both do."""
        limits = [limit for limit in (self.largest_group, self.knobs.get("most_nodes")) if limit is not None]
        return min(limits, default=None)
