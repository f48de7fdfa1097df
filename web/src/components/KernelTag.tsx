/** `K2` in the kernel's colour: the number is there for whoever cannot tell the colours apart. */
export function KernelTag({ place }: { place: number }) {
  return <span class={`kernel-tag kernel-${place % 8}`}>{`K${place + 1}`}</span>;
}
