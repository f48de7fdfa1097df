/** Two texts as one list of lines: Myers' O(ND) algorithm ("An O(ND) Difference Algorithm", 1986). Pure. */

export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
  /** Line numbers from 1; null where the text does not have the line. */
  before: number | null;
  after: number | null;
}

/** Beyond so many differences the middle is told as removed and added whole: nobody reads on, and it would take long. */
const MOST_EDITS = 2000;

export function lineDiff(before: string, after: string): DiffLine[] {
  const [one, two] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < one.length && start < two.length && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < two.length - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  const same = (from: number, count: number, shift: number): DiffLine[] =>
    one.slice(from, from + count).map((text, place) => ({ kind: "same", text, before: from + place + 1, after: from + place + 1 + shift }));
  return [
    ...same(0, start, 0),
    ...middle(one.slice(start, one.length - end), two.slice(start, two.length - end), start),
    ...same(one.length - end, end, two.length - one.length),
  ];
}

function middle(one: readonly string[], two: readonly string[], offset: number): DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [0, 0];
  const removed = (): void => void lines.push({ kind: "removed", text: one[x]!, before: offset + ++x, after: null });
  const added = (): void => void lines.push({ kind: "added", text: two[y]!, before: null, after: offset + ++y });
  // A line that only one of the texts has is in no common sequence, and would make the search long.
  const [ones, twos] = [placesIn(one, two), placesIn(two, one)];
  const common = matches(ones.map((place) => one[place]!), twos.map((place) => two[place]!));
  for (const [sameX, sameY] of common.map(([first, second]) => [ones[first]!, twos[second]!] as const)) {
    while (x < sameX) removed();
    while (y < sameY) added();
    lines.push({ kind: "same", text: one[x]!, before: offset + ++x, after: offset + ++y });
  }
  while (x < one.length) removed();
  while (y < two.length) added();
  return lines;
}

/** Of the lines that the other text has too. */
function placesIn(lines: readonly string[], other: readonly string[]): number[] {
  const known = new Set(other);
  return [...lines.keys()].filter((place) => known.has(lines[place]!));
}

/** Places of a longest common subsequence, in order. */
function matches(one: readonly string[], two: readonly string[]): [number, number][] {
  const furthest = new Map<number, number>([[1, 0]]);
  const trace: Map<number, number>[] = [];
  for (let edits = 0; edits <= Math.min(one.length + two.length, MOST_EDITS); edits += 1) {
    trace.push(new Map(furthest));
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      let x = comesFromAbove(furthest, diagonal, edits) ? (furthest.get(diagonal + 1) ?? 0) : (furthest.get(diagonal - 1) ?? 0) + 1;
      while (x < one.length && x - diagonal < two.length && one[x] === two[x - diagonal]) x += 1;
      furthest.set(diagonal, x);
      if (x >= one.length && x - diagonal >= two.length) return walkedBack(trace, one.length, two.length);
    }
  }
  return [];
}

function comesFromAbove(furthest: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  return diagonal === -edits || (diagonal !== edits && (furthest.get(diagonal - 1) ?? 0) < (furthest.get(diagonal + 1) ?? 0));
}

function walkedBack(trace: readonly ReadonlyMap<number, number>[], endX: number, endY: number): [number, number][] {
  const found: [number, number][] = [];
  let [x, y] = [endX, endY];
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const furthest = trace[edits]!;
    const diagonal = x - y;
    const from = comesFromAbove(furthest, diagonal, edits) ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : (furthest.get(from) ?? 0);
    const fromY = edits === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) found.push([--x, --y]);
    [x, y] = [fromX, fromY];
  }
  return found.reverse();
}

export type Hunk = { kind: "lines"; lines: DiffLine[] } | { kind: "skipped"; count: number };

/** What differs, with a few lines around it; longer stretches of equal lines are left out. */
export function hunks(lines: readonly DiffLine[], around = 3): Hunk[] {
  const isNear = lines.map((_, place) => lines.slice(Math.max(0, place - around), place + around + 1).some((line) => line.kind !== "same"));
  const found: Hunk[] = [];
  lines.forEach((line, place) => {
    const last = found.at(-1);
    if (isNear[place]) {
      if (last?.kind === "lines") last.lines.push(line);
      else found.push({ kind: "lines", lines: [line] });
    } else if (last?.kind === "skipped") last.count += 1;
    else found.push({ kind: "skipped", count: 1 });
  });
  return found;
}
