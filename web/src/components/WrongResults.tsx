import type { WrongResult } from "../report";

/** Which outputs are wrong, and by how much, each in a sentence. */
export function WrongResults({ wrong }: { wrong: WrongResult[] }) {
  return (
    <>
      {wrong.map((one) => (
        <p class="note wrong-result" key={one.message}>
          <span class="chip chip-bad">{one.contestant === "peer" ? "the peer's result is wrong" : "wrong result"}</span> {one.message}
        </p>
      ))}
    </>
  );
}
