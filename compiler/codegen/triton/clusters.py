"""Programs of a row as a cluster: the device runs them at the same time, and each can write into the shared memory of
the others.

    x_block = tl.program_id(0) // 8            cluster 0:  program 0 .. 7
    sum_left = leave(sum_acc)                  every program has the sums of all eight in its own shared memory
    cluster_arrive()
    cluster_wait()
    sum_parts = left_by(sum_left, tl.arange(0, 8))

Nothing goes through memory, there is nothing to count, and no program waits for one that has not started. What it takes
is Hopper's thread block clusters (PTX ISA, "Cluster-level Parallel Synchronization": `barrier.cluster`, `mapa`,
`st.shared::cluster`), of up to eight programs, or sixteen where a function asks for that. A program may write to
another one as soon as that has started, so the first thing that all of them do is to arrive, and they wait for each
other before they leave their first value; after the last wait nobody reaches into a program that may have ended.
"""

from __future__ import annotations

HELPERS: dict[str, str] = {
    "cluster_arrive": '''@triton.jit
def cluster_arrive():
    """What this program has left is there for who waits for it."""
    tl.inline_asm_elementwise(
        "barrier.cluster.arrive.release.aligned; mov.b32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1
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
def leave(value):
    """Leave a float32 with every program of the cluster; where in its shared memory those of all programs lie."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 rank, size, thread, mine, place;
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
        @sends mapa.shared::cluster.u32 place, mine, thread;
        @sends st.shared::cluster.f32 [place], $1;
        }""",
        "=r,f",
        [value],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
''',
    "left_by": '''@triton.jit
def left_by(place, part):
    """What these programs of the cluster have left here."""
    return tl.inline_asm_elementwise(
        "ld.shared.f32 $0, [$1];", "=f,r", [place + 4 * part], dtype=tl.float32, is_pure=False, pack=1
    )
''',
}
