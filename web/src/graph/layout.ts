/**
 * Where everything of one graph stands. Graphviz answers in a worker, which starts when it is first needed; equal maps are
 * laid out once; what Graphviz does not take, or fails at, stands in columns. So one graph never costs the others.
 */
import { inColumns, needsColumns } from "./columns";
import { fromGraphviz, type GraphvizJson, type Layout, toDot } from "./dot";
import type { MapGraph } from "./map";

interface Waiting {
  resolve(answer: GraphvizJson): void;
  reject(reason: Error): void;
}

const waiting = new Map<number, Waiting>();
const known = new Map<string, Promise<GraphvizJson>>();
const KNOWN_AT_MOST = 60;
let worker: Worker | null = null;
let tickets = 0;

function start(): Worker {
  const started = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = (event: MessageEvent<{ ticket: number; answer?: GraphvizJson; error?: string }>) => {
    const { ticket, answer, error } = event.data;
    if (answer) waiting.get(ticket)?.resolve(answer);
    else waiting.get(ticket)?.reject(new Error(error ?? "no layout"));
    waiting.delete(ticket);
  };
  started.onerror = (event) => {
    for (const one of waiting.values()) one.reject(new Error(event.message || "the layout worker failed"));
    waiting.clear();
    worker = null;
  };
  return started;
}

function askGraphviz(dot: string): Promise<GraphvizJson> {
  const before = known.get(dot);
  if (before) return before;
  const answer = new Promise<GraphvizJson>((resolve, reject) => {
    worker ??= start();
    tickets += 1;
    waiting.set(tickets, { resolve, reject });
    worker.postMessage({ ticket: tickets, dot });
  });
  known.set(dot, answer);
  answer.catch(() => known.delete(dot));
  const [oldest] = known.keys();
  if (known.size > KNOWN_AT_MOST && oldest !== undefined) known.delete(oldest);
  return answer;
}

export async function layOut(map: MapGraph): Promise<Layout> {
  if (map.nodes.length === 0) return { width: 0, height: 0, nodes: {}, edges: [], boxes: {}, captions: {} };
  if (needsColumns(map)) return inColumns(map);
  try {
    return fromGraphviz(map, await askGraphviz(toDot(map)));
  } catch {
    return inColumns(map);
  }
}
