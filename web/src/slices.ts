/** Work in slices, so that the page can paint and answer between them. */

/** A frame is 16 ms, of which painting takes some, and so does what began the work. */
const SLICE_MS = 6;

/** Lets the page paint and answer before what follows. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/**
 * Takes the steps now for as long as a slice may last, and the rest in later ones; then calls `done`. Small work is done
 * when this returns. The answer ends it early: `done` is then not called.
 */
export function inSlices(steps: Iterator<void>, done: () => void): () => void {
  let timer = 0;
  const slice = (): void => {
    const end = performance.now() + SLICE_MS;
    while (performance.now() < end) {
      if (steps.next().done) return done();
    }
    timer = globalThis.setTimeout(slice, 0) as unknown as number;
    return undefined;
  };
  slice();
  return () => globalThis.clearTimeout(timer);
}
