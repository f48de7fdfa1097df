import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A menu that opens below its button, and closes by a click elsewhere and by Escape. */
export function useMenu(): RefObject<HTMLDetailsElement | null> {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      if (!menu.current?.open) return;
      const isOutside = event.type === "pointerdown" && !menu.current.contains(event.target as Node);
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      if (!isOutside && !isEscape) return;
      menu.current.open = false;
      if (isEscape) event.preventDefault();
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close, true);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close, true);
    };
  }, []);
  return menu;
}
