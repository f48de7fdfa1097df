/** Groups drawn around nodes that keep their places: units of the scheduler after a round, kernels of the other compiler. */
import * as format from "../../format";
import type { Frame } from "../../graph/stack";
import { ref, type Ref } from "../../links";
import type { Peer } from "../../report";
import { unitsAfter } from "../../rounds";

export interface Blob {
  key: string;
  ids: string[];
  class: string;
  look: "unit" | "merged" | "peer" | "differs";
  title: string;
  ref: Ref | undefined;
}

function idsOf(frame: Frame, nodes: readonly string[]): string[] {
  return [...new Set(nodes.flatMap((name) => frame.map.idOf.get(name) ?? []))].filter((id) => frame.layout.nodes[id]);
}

/** The units of two or more loop nodes after a round; those that this round made stand out. */
export function blobsOfRound(frame: Frame, round: number): Blob[] {
  const originsOf = new Map(frame.graph.loops.map((loop) => [loop.name, loop.origins]));
  const homes = new Map(frame.graph.kernels.flatMap((kernel, place) => kernel.nodes.map((loop) => [loop, place] as const)));
  const before = new Set(unitsAfter(frame.graph, round - 1).map((unit) => unit.join()));
  return unitsAfter(frame.graph, round)
    .filter((unit) => unit.length > 1)
    .map((unit) => ({
      key: unit.join(),
      ids: idsOf(frame, unit.flatMap((loop) => originsOf.get(loop) ?? [])),
      class: `kernel-${(homes.get(unit[0] ?? "") ?? 0) % 8}`,
      look: before.has(unit.join()) ? ("unit" as const) : ("merged" as const),
      title: unit.join(", "),
      ref: undefined,
    }));
}

export function blobsOfPeer(frame: Frame, peer: Peer, differingOnly: boolean): Blob[] {
  const differing = new Set(peer.alignment.flatMap((one) => (one.relation === "same" ? [] : one.theirs)));
  return peer.kernels
    .map((kernel, place) => ({ kernel, place }))
    .filter(({ kernel, place }) => kernel.graph === frame.graph.name && (!differingOnly || differing.has(place)))
    .map(({ kernel, place }) => ({
      key: `peer ${place}`,
      ids: idsOf(frame, kernel.origins),
      class: `kernel-${place % 8}`,
      look: differingOnly ? ("differs" as const) : ("peer" as const),
      title: `${kernel.name}, ${kernel.form}, ${format.count(kernel.origins.length, "operation")}`,
      ref: ref.peer(place),
    }))
    .filter((blob) => blob.ids.length > 0);
}
