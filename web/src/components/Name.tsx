/** So many characters of a name are never cut: names of kernels and nodes differ at their ends. */
const TAIL = 10;

/** A name in the room that there is: cut in the middle where it has to be, whole on hover and when it is copied. */
export function Name({ text }: { text: string }) {
  const cut = Math.max(text.length - TAIL, Math.ceil(text.length / 2));
  return (
    <span class="name" title={text}>
      <span class="name-head">{text.slice(0, cut)}</span>
      <span class="name-tail">{text.slice(cut)}</span>
    </span>
  );
}
