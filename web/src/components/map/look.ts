/** What the reader chose to see on the map, in the address. */
import { compilerShown, report } from "../../state";
import { flag, inAddress, oneOf } from "../../view";
import type { Look } from "../../graph/plan";
import { size } from "./camera";

/** `graph_0/k3` a kernel's operations, `graph_0/r12:4` layer 4 of equal ones, `graph_0/r12:all` all of them; commas between. */
export const opened = inAddress<string>("open", "", { read: (found) => found, write: (value) => value });
export const viewsShown = inAddress<boolean>("views", false, flag);
export const compilersShown = inAddress<"ours" | "peer" | "both">("compilers", "ours", oneOf("ours", "peer", "both"));
/** Whether the list at the map's edge is open: where the reader did not say, it is while the map has room beside it. */
export const listAsked = inAddress<"auto" | "open" | "folded">("list", "auto", oneOf("auto", "open", "folded"));
const ROOM_FOR_LIST = 720;

export function listIsOpen(): boolean {
  return listAsked.value === "open" || (listAsked.value === "auto" && size.value.width > ROOM_FOR_LIST);
}

const tokens = (): string[] => opened.value.split(",").filter(Boolean);

export function lookFor(graph: string, level: "aten" | "fx"): Look {
  const own = tokens().flatMap((token) => (token.startsWith(`${graph}/`) ? [token.slice(graph.length + 1)] : []));
  return { level, showViews: viewsShown.value, opened: new Set(own) };
}

export function open(graph: string, id: string): void {
  opened.value = [...tokens().filter((token) => token !== `${graph}/${id}`), `${graph}/${id}`].join(",");
}

export function close(graph: string, id: string): void {
  opened.value = tokens().filter((token) => token !== `${graph}/${id}`).join(",");
}

/** Of equal layers draw this one, or all. */
export function showLayer(graph: string, id: string, layer: number | "all"): void {
  const others = tokens().filter((token) => !token.startsWith(`${graph}/${id}:`));
  opened.value = (layer === 0 ? others : [...others, `${graph}/${id}:${layer}`]).join(",");
}

const isAllLayers = (token: string): boolean => token.endsWith(":all");

/** Whether equal layers are drawn one after another somewhere. */
export const hasAllLayers = (): boolean => tokens().some(isAllLayers);

/** Of equal layers draw one again. */
export function foldLayers(): void {
  opened.value = tokens().filter((token) => !isAllLayers(token)).join(",");
}

export function showCompilers(which: "ours" | "peer" | "both"): void {
  compilersShown.value = which;
  if (which !== "both" && report.value?.peer) compilerShown.value = which;
}
