"""The parts of a reproducer that are the same for every kernel: code, kept as text."""

from __future__ import annotations

#: Functions that a formula calls, by their names; only those that are called stand in a file. One of them calls only
#: those that stand before it.
HELPERS = {
    "start": '''def start(real, tensor):
    """The memory of a tensor from its first element on, in one row; numbers that are rounded as `real`."""
    flat = tensor.as_strided((extent_of(tensor),), (1,))
    return flat.to(real) if flat.is_floating_point() else flat.clone()''',
    "memory": '''def memory(result, shape, stride):
    """The memory of what a library call gave, in one row."""
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    flat = result.new_zeros(extent)
    flat.as_strided(shape, stride).copy_(result)
    return flat''',
    "view": '''def view(memory, shape, stride, offset):
    """Elements of a memory as a tensor."""
    return memory.as_strided(shape, stride, memory.storage_offset() + offset)''',
    "zeros": """def zeros(count, dtype):
    return torch.zeros(count, dtype=dtype, device=DEVICE)""",
    "axes": '''def axes(sizes):
    """The loop variables: each is an `arange` along an axis of its own."""
    shapes = [[size if n == axis else 1 for n in range(len(sizes))] for axis, size in enumerate(sizes)]
    return [torch.arange(size, device=DEVICE).reshape(shape) for size, shape in zip(sizes, shapes)]''',
    "nearest_float16": """def nearest_float16(x):
    return x.to(torch.float16).to(x.dtype)""",
    "nearest_bfloat16": """def nearest_bfloat16(x):
    return x.to(torch.bfloat16).to(x.dtype)""",
    "position": """def position(index):
    return index if isinstance(index, torch.Tensor) else torch.tensor(index, device=DEVICE)""",
    "constant": """def constant(value, dtype):
    return torch.tensor(value, dtype=dtype, device=DEVICE)""",
    "load": '''def load(memory, index, mask=None):
    """Elements of a memory; zero where `mask` does not hold."""
    index = position(index)
    if mask is None:
        return memory[index]
    mask, index = torch.broadcast_tensors(mask, index)
    return torch.where(mask, memory[torch.where(mask, index, 0)], 0).to(memory.dtype)''',
    "store": """def store(memory, index, value):
    index, value = torch.broadcast_tensors(position(index), value)
    memory[index] = value.to(memory.dtype)""",
    "scatter": '''def scatter(kind, memory, sizes, index, value, mask=None):
    """Points in the order of the loops update the elements that they meet."""
    index, value = position(index).expand(sizes).flatten(), value.expand(sizes).flatten().to(memory.dtype)
    if mask is not None:
        chosen = mask.expand(sizes).flatten()
        index, value = index[chosen], value[chosen]
    if kind == "set":
        memory.scatter_(0, index, value)
    else:
        memory.scatter_reduce_(0, index, value, {"add": "sum", "mul": "prod", "min": "amin", "max": "amax"}[kind])''',
    "rows": '''def rows(value, sizes, reduced):
    """The points of the reduction loops as the last axis."""
    kept = sizes[: len(sizes) - reduced]
    return value.expand(sizes).reshape(*kept, -1)''',
    "reduce": '''def reduce(kind, sizes, reduced, value, index=None):
    """Over all points of the reduction loops; NaN is more extreme than any number."""
    value = rows(value, sizes, reduced)
    if kind in ("sum", "prod"):
        result = getattr(torch, kind)(value, -1, dtype=value.dtype)
    elif kind in ("argmin", "argmax"):
        best = getattr(value, "a" + kind[3:])(-1, keepdim=True)
        is_best = (value == best) | (value.isnan() & best.isnan())
        result = torch.where(is_best, rows(index, sizes, reduced), torch.iinfo(torch.int64).max).amin(-1)
    else:
        result = getattr(value, {"min": "amin", "max": "amax"}.get(kind, kind))(-1)
    return result.reshape(*result.shape, *[1] * reduced)''',
    "scan": '''def scan(kind, sizes, reduced, value):
    """Each point of the reduction loops gets the value of all up to it."""
    result = getattr(torch, "cum" + kind)(rows(value, sizes, reduced), -1)
    return (result.values if kind in ("min", "max") else result).reshape(sizes)''',
    "bits": '''def bits(value, dtype):
    """The number of another type that has the same bits."""
    if value.is_floating_point():
        value = value.to({2: torch.float16, 4: torch.float32, 8: torch.float64}[dtype.itemsize])
    return value.contiguous().view(dtype)''',
    "philox": '''def philox(seed, counter, rounds):
    """The four 32-bit words of a draw (Philox 4x32; Salmon et al., 2011), as int64."""
    low = 0xFFFFFFFF
    seed, counter = torch.broadcast_tensors(seed, counter)
    a, b = counter & low, (counter >> 32) & low
    c, d = torch.zeros_like(a), torch.zeros_like(a)
    key, other_key = seed & low, (seed >> 32) & low
    for _ in range(rounds):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57  # they wrap around; their bits are those of unsigned products
        a, b = ((second >> 32) & low) ^ b ^ key, second & low
        c, d = ((first >> 32) & low) ^ d ^ other_key, first & low
        key, other_key = (key + 0x9E3779B9) & low, (other_key + 0xBB67AE85) & low
    return a, b, c, d''',
    "word_at": '''def word_at(seed, index, rounds):
    """The four words of a draw are those of four indices in a row."""
    words = torch.stack(philox(seed, index >> 2, rounds), -1)
    return words.gather(-1, (index & 3).expand(words.shape[:-1])[..., None])[..., 0]''',
    "uniform_of": '''def uniform_of(word):
    """A 32-bit word as a float32 in [0, 1): its magnitude as a signed number, scaled."""
    signed = torch.where(word >= 2**31, 2**32 - 1 - word, word)
    return signed.to(torch.float32) * 4.6566127342e-10''',
    "rand": """def rand(seed, index):
    return uniform_of(word_at(seed, index, 10))""",
    "rand_compared": '''def rand_compared(seed, index):
    """Two indices in a row share a word: the second has it with its halves in the other order."""
    word = word_at(seed, index >> 1, 7)
    rotated = ((word << 16) | (word >> 16)) & 0xFFFFFFFF
    return uniform_of(torch.where(index & 1 == 1, rotated, word) >> 1)''',
    "randn": '''def randn(seed, index):
    """Box and Muller's transform of two uniform numbers."""
    first, second = (uniform_of(word).double() for word in philox(seed, index, 10)[:2])
    return (-2 * first.clamp_min(1e-7).log()).sqrt() * (2 * torch.pi * second).cos()''',
    "truncdiv": """def truncdiv(a, b):
    return torch.div(a, b, rounding_mode="trunc")""",
}

TENSORS = '''
def extent_of(tensor):
    """Elements of memory from the first one of a tensor to its last."""
    return 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0


def tensor(numbers, shape, stride):
    """`numbers`, a function of a count and a generator, as a tensor of this shape that lies by these strides."""
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride)) if 0 not in shape else 0
    generator = torch.Generator().manual_seed(SEED + len(made))
    made.append(shape)
    return numbers(extent, generator).to(DEVICE).as_strided(shape, stride)


made = []


def rounded(dtype, spread=torch.randn):
    """Random numbers; standard normal ones."""
    return lambda count, generator: spread(count, generator=generator).to(dtype)


def whole(dtype, smallest, largest):
    """Random integers from `smallest` to `largest`."""
    return lambda count, generator: torch.randint(smallest, largest + 1, (count,), generator=generator).to(dtype)


def zero(dtype):
    """Zeros: what other kernels write."""
    return lambda count, generator: torch.zeros(count, dtype=dtype)


def copied(tensor):
    """A copy that lies alike."""
    flat = tensor.as_strided((extent_of(tensor),), (1,)).clone()
    return flat.as_strided(tensor.shape, tensor.stride())
'''

CHECKS = '''
#: Relative errors that rounding alone explains.
TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 2e-2}


def error_of(found, expected):
    """|found - expected| / |expected| over all elements; of integers the share that differs. NaN and infinities must
    stand at the same positions."""
    if not found.is_floating_point():
        return float((found != expected.to(found.dtype)).double().mean()) if found.numel() else 0.0
    found, expected = found.double(), expected.double()
    special = ~(found.isfinite() & expected.isfinite())
    if bool((special & ~((found == expected) | (found.isnan() & expected.isnan()))).any()):
        return float("inf")
    found, expected = found.masked_fill(special, 0.0), expected.masked_fill(special, 0.0)
    size, apart = float(torch.linalg.vector_norm(expected)), float(torch.linalg.vector_norm(found - expected))
    return apart / size if size else apart


def is_right(name, found, exact, others):
    """Prints one line. `others` are errors of the same computation in the kernel's own precision."""
    error = error_of(found, exact)
    allowed = max([TOLERANCE.get(found.dtype, 1e-3), *(2 * other for who, other in others.items() if "lines" in who)])
    beside = "".join(f"{other:.1e} {who}, " for who, other in others.items())
    right = error <= allowed
    print(f"{name}: error {error:.1e} against float64 ({beside}{allowed:.1e} allowed): {'right' if right else 'WRONG'}")
    return right


def all_right(values, exact, others):
    """Looks at every result. `exact` and `others` have the memory, or the tensor, of each."""
    checks = []
    for n, name in enumerate(WRITES):
        found = values[name]
        one, *rest = (as_one_lies(kind[n], found) for kind in (exact, *others.values()))
        errors = {who: error_of(other.to(found.dtype), one) for who, other in zip(others, rest)}
        checks.append(is_right(name, found, one, errors))
    return checks


def as_one_lies(memory, tensor):
    """What a memory in one row holds where the tensor lies; a tensor stays."""
    return memory.as_strided(tensor.shape, tensor.stride()) if memory.shape != tensor.shape else memory


def time_of(call, empty=None):
    """What a call takes, and what is in it. `empty` is the same call of a function that does nothing."""
    if DEVICE == "cuda":
        return f"{written(gpu_microseconds(call))} on the GPU, from a cold L2 cache, without the host's launch"
    took = microseconds(call)
    if empty is None:
        return f"{written(took)}, from warm caches, with Python's share"
    share = microseconds(empty)
    alone = written(max(took - share, 0.0))
    return f"{alone}, from warm caches, without the {written(share)} that Python takes to call it"


def written(took):
    return f"{took:,.0f} us" if took >= 100 else f"{took:.3g} us"


def microseconds(call):
    """The median of up to 30 runs by the host's clock, each long enough to be timed."""
    call()
    began = time.perf_counter()
    call()
    once = time.perf_counter() - began
    repeats = max(1, min(1000, int(1e-4 / max(once, 1e-7))))
    samples = []
    while len(samples) < 3 or (len(samples) < 30 and time.perf_counter() - began < 2):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        samples.append(1e6 * (time.perf_counter() - start) / repeats)
    return statistics.median(samples)


def gpu_microseconds(call):
    """The median of 30 runs between events of the GPU, less that of a call that does nothing. Memory of twice the size
    of the L2 cache is overwritten before each: that empties the cache, and the GPU is busy with it until the host has
    queued the call, so that no wait for the host is in the time."""
    size = getattr(torch.cuda.get_device_properties(DEVICE), "L2_cache_size", 64 << 20)
    other = torch.empty(2 * size, dtype=torch.uint8, device=DEVICE)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    queueing = 1e6 * (time.perf_counter() - began)

    def sample(work, fills):
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(fills):
            other.zero_()
        first.record()
        work()
        last.record()
        torch.cuda.synchronize()
        return 1e3 * first.elapsed_time(last)

    fill = max(sample(other.zero_, 1), 1.0)
    fills = 2 + min(int(3 * queueing / fill), 200)
    took, nothing = (
        statistics.median(sample(work, fills) for _ in range(30)) for work in (call, lambda: None)
    )
    return max(took - nothing, 0.0)
'''

BUILD_CPP = '''
def library():
    """The kernel, compiled and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        source, built = os.path.join(folder, "kernel.cpp"), os.path.join(folder, "kernel.so")
        with open(source, "w") as file:
            file.write(HEADERS + KERNEL + 'extern "C" void empty() {}\\n')
        compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
        for extra in ([], ["-O1", "-fno-tree-vectorize"]):  # compilers have faults of their own where they make vectors
            done = subprocess.run([compiler, *FLAGS, *extra, source, "-o", built], capture_output=True, text=True)
            if done.returncode == 0:
                return ctypes.CDLL(built)
    raise SystemExit(f"{compiler} could not compile the kernel:\\n{done.stderr[:4000]}")


def function(library, name):
    """A function of the library that takes tensors, and then sizes."""
    found = getattr(library, name)
    found.restype = None

    def call(*arguments):
        if hasattr(library, "omp_set_num_threads"):
            library.omp_set_num_threads(torch.get_num_threads())
        found(*(
            ctypes.c_void_p(one.data_ptr()) if isinstance(one, torch.Tensor) else ctypes.c_int64(one)
            for one in arguments
        ))

    return call
'''

MAIN = """
def main():
    for spread in (torch.randn, torch.rand):  # standard normal ones; or, where most of that is NaN, from 0 to 1
        made.clear()
        values = inputs(spread)
        given = [copied(values[name]) for name in GIVEN]
        launch = launcher()
        launch(values)
        if not all(values[name].is_floating_point() and values[name].isnan().double().mean() > 0.5 for name in WRITES):
            break
    checks = compared(given, values)
    if not os.environ.get("TRITON_INTERPRET"):
        empty = getattr(launch, "empty", None)
        print(f"kernel: {time_of(lambda: launch(values), empty and (lambda: empty(values)))}")
    print("WRONG" if not all(checks) else "RIGHT" if checks else "NOT COMPARED")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    raise SystemExit(main())
"""

ATTENTION = '''
def attention_formula(operator, *given, **named):
    """By torch's formula, with the arguments of the library's operator."""
    names = [argument.name for argument in operator._schema.arguments]
    known = {**dict(zip(names, given)), **named}
    if known.get("dropout_p"):
        raise RuntimeError("It draws random numbers.")
    query, key, value = (known[name] for name in ("query", "key", "value"))
    mask = known.get("attn_bias", known.get("attn_mask"))
    formula = torch.ops.aten._scaled_dot_product_attention_math
    return formula(query, key, value, mask, 0.0, known.get("is_causal", False), scale=known.get("scale"))[0]
'''

LIBRARY = '''
def allow_for_tf32(device):
    """On a GPU torch may round float32 factors to 11 bits: each by up to 2^-11, so that products are off by 2^-10."""
    if device == "cuda" and ROUNDED_BY is not None and ROUNDED_BY.allow_tf32:
        TOLERANCE[torch.float32] = 2**-10


def results_of(result):
    return [one for one in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(one, torch.Tensor)]


def main():
    allow_for_tf32(DEVICE)
    values = inputs()
    given = [values[name] for name in GIVEN]
    torch.manual_seed(SEED)
    found = results_of(library(*given))
    checks = []
    try:
        torch.manual_seed(SEED)
        exact = results_of(exactly(*(one.double() if one.is_floating_point() else one for one in given)))
    except RuntimeError as reason:  # not every library call has a form for float64
        print(f"Not compared with float64: {str(reason).splitlines()[0]}")
        exact = []
    for n, (one, other) in enumerate(zip(found, exact), start=1):
        if one.numel():
            checks.append(is_right(f"result {n}", one, other, {}))
    print(f"library call: {time_of(lambda: library(*given))}")
    print("WRONG" if not all(checks) else "RIGHT" if checks else "NOT COMPARED")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    raise SystemExit(main())
'''
