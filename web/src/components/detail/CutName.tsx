const TAIL = 9;

/** A name on one line, cut in its middle where there is no room: how it begins and how it ends tell names apart. */
export function CutName({ name }: { name: string }) {
  if (name.length <= TAIL * 2) return <span class="cut-name">{name}</span>;
  return (
    <span class="cut-name" title={name}>
      <span class="cut-name-start">{name.slice(0, -TAIL)}</span>
      <span class="cut-name-end">{name.slice(-TAIL)}</span>
    </span>
  );
}
