"""Operators of random programs that give new tensors: arithmetic, comparisons, reductions, casts, products.

Each function draws operands and gives a `Draft`; the table at the end of `generate.py` says how often it is drawn. What
it drafts may turn out not to run (a shape that does not fit): the generator drops it then.
"""

from __future__ import annotations

from bench.programs.pick import Draft, Pick

ROUNDING = """
    torch.sin({x}) torch.cos({x}) torch.tanh({x}) torch.sigmoid({x}) torch.exp(-{x}.abs()) torch.log1p({x}.abs())
    torch.sqrt({x}.abs()+0.125) torch.rsqrt({x}.abs()+0.5) torch.erf({x}) F.gelu({x}) F.silu({x}) F.softplus({x})
    F.elu({x}) torch.atan({x}) ({x}.abs()+0.5).reciprocal() torch.square({x}) torch.log({x}.abs()+0.25)
    torch.exp2({x}.clamp(-3,3)) F.gelu({x},approximate='tanh') F.mish({x}) torch.expm1({x}.clamp(-2,2)) {x}**2
    torch.asinh({x}) torch.logit({x}.sigmoid().clamp(0.1,0.9)) F.hardswish({x}) F.logsigmoid({x}) {x}**-0.5
    torch.addcmul({x},{x},{x},value=0.5) torch.lerp({x},{x}.sin(),0.25) F.normalize({x},dim=-1) F.leaky_relu({x},0.1)
""".split()
MOVING = """
    torch.neg({x}) torch.abs({x}) torch.relu({x}) {x}.clone() {x}.contiguous() {x}.clamp(-1,1) {x}.clamp_min(-0.5)
    {x}.clamp_max(0.5) F.hardtanh({x}) {x}*2 {x}-1 1-{x} {x}+0.5 {x}*-1 F.relu6({x}) F.threshold({x},0.5,-1)
    torch.zeros_like({x}) torch.full_like({x},1.5) torch.nan_to_num({x}) {x}.positive() {x}.detach() {x}*1
""".split()
DECIDING = """
    torch.floor({x}) torch.ceil({x}) torch.round({x}) torch.trunc({x}) torch.sign({x}) torch.frac({x})
    {x}.to(i32) {x}.to(i64) {x}.to(i8) {x}>0 {x}==0 {x}<=1 torch.isfinite({x}) {x}%2 {x}//2 {x}.bool()
    torch.remainder({x},-1.5) torch.fmod({x},0.75) torch.heaviside({x},{x}) torch.logical_not({x})
    torch.round({x},decimals=1) torch.div({x},0.5,rounding_mode='floor') torch.isclose({x},{x}.abs())
""".split()
INTEGER = """
    ~{x} {x}.abs() -{x} {x}*3 {x}+1 {x}%3 {x}//3 {x}&6 {x}|1 {x}^5 {x}>>1 {x}.clamp(-3,3) {x}/4 {x}==2 {x}>1
    {x}.bool() torch.sign({x}) torch.square({x}) torch.remainder({x},-5) torch.fmod({x},4) {x}*0.5 {x}.to(f32)
    torch.sin({x}) torch.bitwise_left_shift({x},torch.remainder({x},3)) {x}**2 torch.zeros_like({x}) {x}.clone()
""".split()
MASK = """
    ~{x} {x}.to(f32) {x}.to(i64) {x}+1 {x}*2.5 {x}.logical_not() {x}.clone() {x}.to(u8) {x}^True {x}&{x} {x}*3
""".split()


def rounding(pick: Pick) -> Draft:
    x = pick.floating()
    return Draft(pick.choice(ROUNDING).format(x=x), "rounds", (x,))


def moving(pick: Pick) -> Draft:
    x = pick.floating()
    return Draft(pick.choice(MOVING).format(x=x), "moves", (x,))


def deciding(pick: Pick) -> Draft:
    x = pick.floating(exact=True)
    return Draft(pick.choice(DECIDING).format(x=x), "decides", (x,))


def of_integers(pick: Pick) -> Draft:
    x = pick.integral()
    return Draft(pick.choice(INTEGER).format(x=x), "moves", (x,))


def of_masks(pick: Pick) -> Draft:
    x = pick.mask()
    return Draft(pick.choice(MASK).format(x=x), "moves", (x,))


def binary(pick: Pick) -> Draft:
    x = pick.tensor()
    y = pick.like(x)
    form = pick.choice(
        "{x}+{y} {x}-{y} {x}*{y} torch.maximum({x},{y}) torch.minimum({x},{y}) torch.add({x},{y},alpha=2)".split()
    )
    return Draft(form.format(x=x, y=y), "moves", (x, y))


def binary_rounding(pick: Pick) -> Draft:
    x = pick.floating()
    y = pick.like(x)
    form = pick.choice(
        "{x}/({y}.abs()+0.5) torch.hypot({x},{y}) torch.logaddexp({x},{y}) {x}*{y}.sigmoid()"
        " ({x}.abs()+0.5)**{y}.tanh() torch.lerp({x},{y},0.3) torch.addcdiv({x},{y},{y}.abs()+1)"
        " ({x}-{y}).square().mean() torch.xlogy({x},{y}.abs()+0.5) torch.copysign({x}.sin(),{y}.abs()+1)".split()
    )
    return Draft(form.format(x=x, y=y), "rounds", (x, y))


def binary_integral(pick: Pick) -> Draft:
    x = pick.integral()
    y = pick.like(x, lambda t: not t.dtype.is_floating_point, True)
    form = pick.choice(
        "{x}&{y} {x}|{y} {x}^{y} {x}//(torch.remainder({y},5)+1) {x}%(torch.remainder({y},4)+1) {x}-{y}*2 {x}*{y}"
        " torch.bitwise_right_shift({x},torch.remainder({y},4))"
        " torch.div({x},torch.remainder({y},3)+1,rounding_mode='trunc')"
        " {x}/(torch.remainder({y},3)+1) torch.fmod({x},torch.remainder({y},3)+2)".split()
    )
    return Draft(form.format(x=x, y=y), "moves", (x, y))


def comparison(pick: Pick) -> Draft:
    x = pick.tensor(exact=True)
    y = pick.like(x, exact=True)
    form = pick.choice("{x}<{y} {x}<={y} {x}>{y} {x}>={y} {x}=={y} {x}!={y} torch.logical_xor({x},{y})".split())
    return Draft(form.format(x=x, y=y), "decides", (x, y))


def chosen(pick: Pick) -> Draft:
    mask = pick.mask()
    x = pick.like(mask)
    if pick.chance(0.3):
        return Draft(f"{x}.masked_fill({mask}, {pick.number()})", "moves", (x, mask))
    if pick.chance(0.3):
        return Draft(f"torch.where({mask}, {x}, {pick.number()})", "moves", (x, mask))
    y = pick.like(x)
    return Draft(f"torch.where({mask}, {x}, {y})", "moves", (x, y, mask))


def cast(pick: Pick) -> Draft:
    x = pick.tensor()
    return Draft(f"{x}.to({pick.floating_dtype()}, copy=True)", "moves", (x,))


def cast_to_integers(pick: Pick) -> Draft:
    x = pick.tensor(exact=True)
    return Draft(f"{x}.to({pick.integral_dtype()}, copy=True)", "decides", (x,))


def _over(pick: Pick, x: str) -> str:
    """Dimensions to reduce, and whether they are kept, as text."""
    dims = pick.dims(x)
    text = str(dims[0] if len(dims) == 1 else list(dims))
    return text + (", keepdim=True" if pick.chance(0.5) else "")


def reduction(pick: Pick) -> Draft:
    x = pick.tensor(lambda t: t.dtype.is_floating_point and t.dim() > 0 and t.numel() > 0)
    over = _over(pick, x)
    form = pick.choice(
        "{x}.sum({d})/4 {x}.mean({d}) {x}.var({d},correction=0) {x}.std({d},correction=0)+1 torch.logsumexp({x},{d})"
        " torch.linalg.vector_norm({x},dim={d}) {x}.sum() {x}.mean() {x}.sigmoid().prod(-1) torch.nansum({x},{d})"
        " {x}.var() {x}.norm() torch.std({x},{d},correction=0)".split()
    )
    return Draft(form.format(x=x, d=over), "rounds", (x,))


def extreme(pick: Pick) -> Draft:
    x = pick.ranked()
    over = _over(pick, x)
    form = pick.choice("{x}.amax({d}) {x}.amin({d}) {x}.max() {x}.min()".split())
    return Draft(form.format(x=x, d=over), "moves", (x,))


def several_results(pick: Pick) -> Draft:
    x = pick.ranked()
    dim = pick.dim(x)
    if pick.worlds.is_exact(x) and pick.chance(0.6):
        form = pick.choice([f"torch.max({x}, {dim})", f"torch.min({x}, {dim}, keepdim=True)"])
        return Draft(form, "decides", (x,), results=2)
    form = pick.choice([f"torch.var_mean({x}, {dim}, correction=0)", f"torch.aminmax({x}, dim={dim})"])
    return Draft(form, "rounds" if "var" in form else "moves", (x,), results=2)


def counted(pick: Pick) -> Draft:
    """Reductions of exact numbers to exact numbers."""
    x = pick.tensor(lambda t: t.dim() > 0 and t.numel() > 0, exact=True)
    dim = pick.dim(x)
    floating = pick.value(x).dtype.is_floating_point
    forms = "torch.argmax({x},{d}) torch.argmin({x},{d},keepdim=True) {x}.any({d}) {x}.all({d},keepdim=True)"
    forms += " torch.count_nonzero({x},{d}) torch.argmax({x}) {x}.any() {x}.all()"
    if not floating:
        forms += " {x}.sum({d}) {x}.sum() {x}.cumsum({d}) ({x}%3).prod({d})"
    return Draft(pick.choice(forms.split()).format(x=x, d=dim), "decides", (x,))


def normalised(pick: Pick) -> Draft:
    x = pick.tensor(lambda t: t.dtype.is_floating_point and t.dim() > 0 and t.numel() > 0)
    dim = pick.dim(x)
    size = pick.shape(x)[-1]
    form = pick.choice(
        f"torch.softmax({x},{dim}) torch.log_softmax({x},{dim}) F.layer_norm({x},({size},)) F.softmin({x},{dim})"
        f" {x}-{x}.mean({dim},keepdim=True) {x}/({x}.abs().amax({dim},keepdim=True)+1) F.rms_norm({x},({size},))"
        f" {x}.cumsum({dim})/8 torch.softmax({x}*2,-1) ({x}-{x}.amax({dim},keepdim=True)).exp()".split()
    )
    return Draft(form, "rounds", (x,))


def product(pick: Pick) -> Draft:
    x = pick.floating(rank=2)
    dtype, size = pick.value(x).dtype, pick.shape(x)[-1]
    y = pick.tensor(lambda t: t.dtype == dtype and t.dim() >= 2 and size in tuple(t.shape)[-2:])
    other = y if pick.shape(y)[-2] == size else f"{y}.mT"
    return Draft(f"({x} @ {other}) / {max(size, 1)}", "rounds", (x, y))
