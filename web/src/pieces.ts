/** Buffers as pieces of memory: one after another in the same piece, each from the launch that makes it to its last. Pure. */
import type { Buffer, Graph } from "./report";

export interface Tenant {
  buffer: Buffer;
  /** In launches, from the left: a buffer written in place begins in the middle of the launch that ends the one before. */
  from: number;
  to: number;
}

export interface Piece {
  tenants: Tenant[];
  bytes: number;
}

export interface Plan {
  launches: { label: string; title: string; kernel: number | null }[];
  live: number[];
  pieces: Piece[];
  peak: number;
}

/** The plan of our kernels, or of a compiler that reuses memory but does not fuse; null where there is none. */
export function planOf(graph: Graph, way: "fused" | "unfused"): Plan | null {
  const { memory } = graph;
  if (!memory) return null;
  const live = way === "fused" ? memory.live_bytes : memory.unfused_live_bytes;
  const launches =
    way === "fused"
      ? graph.kernels.map((kernel, place) => ({ label: `K${place + 1}`, title: kernel.name, kernel: place }))
      : graph.loops.filter((loop) => !loop.dead).map((loop) => ({ label: loop.name, title: loop.name, kernel: null }));
  const buffers = way === "fused" ? graph.buffers : memory.unfused_buffers;
  return { launches, live, pieces: piecesOf(buffers, live.length - 1), peak: Math.max(0, ...live) };
}

/** Largest first among those that begin together; inputs belong to the caller, and registers are no memory. */
function piecesOf(buffers: Buffer[], launches: number): Piece[] {
  const byName = new Map(buffers.map((buffer) => [buffer.name, buffer]));
  const pieces = new Map<string, Piece>();
  for (const buffer of buffers) {
    if (buffer.first === null || buffer.last === null || buffer.fate === "input" || buffer.fate === "register") continue;
    const root = rootOf(buffer, byName);
    const piece = pieces.get(root) ?? { tenants: [], bytes: 0 };
    piece.bytes = Math.max(piece.bytes, buffer.bytes);
    piece.tenants.push({ buffer, from: buffer.first, to: Math.min(buffer.last, launches - 1) + 1 });
    pieces.set(root, piece);
  }
  for (const { tenants } of pieces.values()) {
    tenants.sort((one, other) => one.from - other.from);
    tenants.slice(1).forEach((tenant, place) => {
      const before = tenants[place];
      if (before && before.to > tenant.from) before.to = tenant.from += 0.5;
    });
  }
  return [...pieces.values()].sort((one, other) => (one.tenants[0]?.from ?? 0) - (other.tenants[0]?.from ?? 0) || other.bytes - one.bytes);
}

function rootOf(buffer: Buffer, byName: ReadonlyMap<string, Buffer>): string {
  let root = buffer;
  for (let next = root.takes_over; next !== null; next = root.takes_over) {
    const before = byName.get(next);
    // What a scatter changes may be an input, which is no piece of ours.
    if (!before || before.fate === "input") return next;
    root = before;
  }
  return root.name;
}
