"""Programs of a row as a cluster: the device runs them at the same time, and each can write into the shared memory of
the others.

    sum_gate = open_gate(4 * 8)                program 0 .. 7 of a cluster
    cluster_arrive()
    ...
    cluster_wait()
    sum_left = leave(sum_acc, sum_gate)        every program has the sums of all eight in its own shared memory
    wait_at(sum_gate)
    sum_parts = left_by(sum_left, tl.arange(0, 8))

Nothing goes through memory, there is nothing to count, and no program waits for one that has not started. What it takes
is Hopper's thread block clusters (PTX ISA: `barrier.cluster`, `mapa`), of up to eight programs, or sixteen where a
function asks for that, and its barriers that count the bytes which others write (`mbarrier`, `st.async`): who waits for
bytes needs no order among all the writes of a program, which a barrier of the cluster has to make. A program may write
to another one as soon as that has opened its gates, so the first thing that all of them do after this is to arrive, and
they wait for each other before they leave their first value. A program ends when it has the values of all others, so
nobody reaches into one that has ended.

Programs that are no cluster wait for what others leave in memory: see `teams.py` and `look_back.py`.
"""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "wait_for": '''@triton.jit
def wait_for(counter, count):
    """Wait until so many programs have counted themselves; what they wrote before can be read then."""
    arrived = tl.atomic_add(counter, 0, sem="acquire")
    while arrived < count:
        arrived = tl.atomic_add(counter, 0, sem="acquire")
''',
    "send": '''@triton.jit
def send(pointer, value, launch):
    """Leave 32 bits in one word with the number of the launch."""
    tl.store(pointer, (value.to(tl.int32, bitcast=True).to(tl.int64) << 32) | launch)
''',
    "receive": '''@triton.jit
def receive(pointer, launch):
    """The float32 at these addresses, when all of them are there."""
    words = tl.load(pointer, volatile=True)
    while any_lane((words & 0xFFFFFFFF) != launch):
        words = tl.load(pointer, volatile=True)
    return (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)
''',
    "send_wide": '''@triton.jit
def send_wide(pointer, apart, value, launch):
    """Leave 64 bits in two words that lie `apart`, each with the number of the launch."""
    bits = value.to(tl.int64, bitcast=True)
    tl.store(pointer, (bits << 32) | launch)
    tl.store(pointer + apart, (bits >> 32 << 32) | launch)
''',
    "look_back": '''@triton.jit
def look_back(pointer, is_before, launch):
    """The 32 bits that programs before this one leave at these addresses, when all of them are there; 0 elsewhere."""
    words = tl.load(pointer, is_before, other=launch, volatile=True)
    while any_lane((words & 0xFFFFFFFF) != launch):
        words = tl.load(pointer, is_before, other=launch, volatile=True)
    return (words >> 32).to(tl.int32)
''',
    "look_back_wide": '''@triton.jit
def look_back_wide(pointer, apart, is_before, launch):
    """The same of 64 bits in two words that lie `apart`."""
    low = look_back(pointer, is_before, launch).to(tl.int64) & 0xFFFFFFFF
    return (look_back(pointer + apart, is_before, launch).to(tl.int64) << 32) | low
''',
    "open_gate": '''@triton.jit
def open_gate(expected):
    """A gate to wait for so many bytes; to be opened before the programs of the cluster arrive."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 address, thread;
        .reg .pred opens;
        .shared .align 8 .b8 gate[8];
        mov.u32 address, gate;
        mov.u32 thread, %tid.x;
        setp.eq.u32 opens, thread, 0;
        @opens mbarrier.init.shared::cta.b64 [address], 1;
        @opens fence.mbarrier_init.release.cluster;
        @opens mbarrier.arrive.expect_tx.shared::cta.b64 _, [address], $1;
        mov.b32 $0, address;
        }""",
        "=r,r",
        [expected],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
''',
    "cluster_arrive": '''@triton.jit
def cluster_arrive():
    """The gates of this program are open."""
    tl.inline_asm_elementwise(
        "barrier.cluster.arrive.relaxed.aligned; mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
''',
    "cluster_wait": '''@triton.jit
def cluster_wait():
    """Wait until all programs of the cluster have arrived."""
    tl.inline_asm_elementwise(
        "barrier.cluster.wait.acquire.aligned; mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
    )
''',
    "leave": '''@triton.jit
def leave(value, gate):
    """Leave a float32 with every program of the cluster; where in its shared memory those of all programs lie."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 rank, size, thread, mine, address, opened;
        .reg .pred sends;
        .shared .align 4 .b8 left[64];
        mov.u32 rank, %cluster_ctarank;
        mov.u32 size, %cluster_nctarank;
        mov.u32 thread, %tid.x;
        mov.u32 mine, left;
        mov.u32 $0, mine;
        shl.b32 rank, rank, 2;
        add.u32 mine, mine, rank;
        setp.lt.u32 sends, thread, size;
        @sends mapa.shared::cluster.u32 address, mine, thread;
        @sends mapa.shared::cluster.u32 opened, $2, thread;
        @sends st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [address], $1, [opened];
        }""",
        "=r,r,r",
        [value, gate],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
''',
    "wait_at": '''@triton.jit
def wait_at(gate):
    """Wait until all that was expected at a gate is there."""
    tl.inline_asm_elementwise(
        """{
        .reg .pred is_there;
        waits:
        mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 is_there, [$1], 0;
        @!is_there bra waits;
        mov.b32 $0, 0;
        }""",
        "=r,r",
        [gate],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
''',
    "left_by": '''@triton.jit
def left_by(address, part):
    """What these programs of the cluster have left here."""
    return tl.inline_asm_elementwise(
        "ld.shared.f32 $0, [$1];", "=f,r", [address + 4 * part], dtype=tl.float32, is_pure=False, pack=1
    )
''',
}
