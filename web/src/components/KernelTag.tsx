import { kernelPlace } from "../state";

/** `K2` in the kernel's colour: the number is there for whoever cannot tell the colours apart. */
export function KernelTag({ name }: { name: string }) {
  const place = kernelPlace.value.get(name);
  return place === undefined ? null : <span class={`kernel-tag kernel-${place % 8}`}>{`K${place + 1}`}</span>;
}
