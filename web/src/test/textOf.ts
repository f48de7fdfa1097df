import type { ComponentChildren, VNode } from "preact";

/** The text of what is rendered, of components without state of their own. */
export function textOf(node: ComponentChildren): string {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (node === null || typeof node !== "object") return typeof node === "boolean" || node == null ? "" : String(node);
  const { type, props } = node as VNode<{ children?: ComponentChildren }>;
  return typeof type === "function" ? textOf((type as (given: unknown) => ComponentChildren)(props)) : textOf(props.children);
}
