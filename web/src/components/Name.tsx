/** So many characters of a name are never cut: names of kernels and nodes differ at their ends. */
const TAIL = 10;

/** A name in the room that there is: cut in the middle where it has to be, whole on hover and when it is copied. */
export function Name({ text }: { text: string }) {
  // What is read aloud has a gap at the cut: a short name has none.
  if (text.length <= 2 * TAIL) {
    return (
      <span class="name" title={text}>
        <span class="name-head">{text}</span>
      </span>
    );
  }
  const cut = Math.max(text.length - TAIL, Math.ceil(text.length / 2));
  return (
    <span class="name" title={text}>
      <span class="name-head">{text.slice(0, cut)}</span>
      <span class="name-tail">{text.slice(cut)}</span>
    </span>
  );
}
