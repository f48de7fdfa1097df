import { useEffect, useRef, useState } from "preact/hooks";
import { source } from "../state";

/** Asked for at once, while the page builds what stands around it. */
const loading = import("../editor/view");

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  const [isThere, setThere] = useState(false);
  useEffect(() => {
    let unmount: (() => void) | null = null;
    let isWanted = true;
    void loading.then(({ mountEditor }) => {
      if (!isWanted || !host.current) return;
      unmount = mountEditor(host.current);
      setThere(true);
    });
    return () => {
      isWanted = false;
      unmount?.();
    };
  }, []);
  return (
    <>
      {!isThere && <pre class="editor-loading">{source.value}</pre>}
      <div class="editor" id="editor" ref={host} data-own-hover hidden={!isThere} />
    </>
  );
}
