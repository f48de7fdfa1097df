import type { ComponentChildren } from "preact";

/** A scrolling region that the keyboard can reach; lighting brings partners into its view. */
export function Scroller({ label, children, class: className = "" }: { label: string; children: ComponentChildren; class?: string }) {
  return (
    <div class={`scroller ${className}`} role="region" aria-label={label} tabIndex={0} data-scroller>
      {children}
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}
