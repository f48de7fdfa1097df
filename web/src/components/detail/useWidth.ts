import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** The width of an element in pixels, as it changes: a picture drawn to it has type of the page's own size. */
export function useWidth<Kind extends HTMLElement>(initial: number) {
  const ref = useRef<Kind>(null);
  const [width, setWidth] = useState(initial);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth || initial));
    observer.observe(element);
    setWidth(element.clientWidth || initial);
    return () => observer.disconnect();
  }, [initial]);
  return { ref, width };
}
