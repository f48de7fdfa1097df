/** Graphviz, off the page's thread: a large graph takes it seconds. */
import { instance } from "@viz-js/viz";

export interface LayoutRequest {
  ticket: number;
  dot: string;
}

const graphviz = instance();

self.onmessage = async (event: MessageEvent<LayoutRequest>) => {
  const { ticket, dot } = event.data;
  try {
    const answer = (await graphviz).renderJSON(dot, { engine: "dot" });
    self.postMessage({ ticket, answer });
  } catch (error) {
    self.postMessage({ ticket, error: error instanceof Error ? error.message : String(error) });
  }
};
