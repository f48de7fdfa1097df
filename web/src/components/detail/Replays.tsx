import * as format from "../../format";
import type { CallTimes, Graph, Replay, ReplayInput } from "../../report";
import { reasons, refs } from "../../state";
import { Facts } from "../Facts";
import { Head } from "../Head";
import { ReasonName } from "../why/ReasonPage";
import { Empty, Scroller } from "../Scroller";
import { Worded } from "../Worded";

const WAYS: Record<ReplayInput["way"], string> = {
  in_place: "read in place",
  copied: "copied in each call",
  held: "held by the graph that made it",
};

/** What each replay does besides launching: what it copies, what it leaves where it is, what memory it keeps. */
function factsOf(replay: Replay): [string, string][] {
  const facts: [string, string | null][] = [
    ["option cuda_graphs", replay.option],
    ["launches of a call", `${replay.launches}, ${replay.library_calls} of them library calls`],
    ["recorded", replay.recorded_launches === null ? null : `${replay.recorded_launches}, ${replay.recorded_library_calls ?? 0} of them library calls`],
    ["copied in", replay.copied_in_bytes === null ? null : format.bytes(replay.copied_in_bytes)],
    ["copied out", replay.copied_out_bytes === null ? null : format.bytes(replay.copied_out_bytes)],
    ["given without a copy", replay.held_bytes ? format.bytes(replay.held_bytes) : null],
    ["memory of the pool", replay.pool_bytes === null ? null : format.bytes(replay.pool_bytes)],
    ["recordings", replay.recordings > 0 ? String(replay.recordings) : null],
    ["calls so far", replay.recordings > 0 ? `${replay.replays} replayed, ${replay.launched_calls} still launched one by one` : null],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

function Row({ name, times }: { name: string; times: CallTimes | null }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="number">{times === null ? "not measured" : format.microseconds(times.measured_host_us)}</td>
      <td class="number">{times === null ? "not measured" : format.microseconds(times.measured_elapsed_us)}</td>
    </tr>
  );
}

function Times({ replay }: { replay: Replay }) {
  if (replay.launched === null && replay.replayed === null) return null;
  return (
    <table class="compact">
      <caption class="visually-hidden">A call both ways, measured</caption>
      <Head columns={["a call, measured", "host", "first launch to last"]} numbers={["host", "first launch to last"]} />
      <tbody>
        <Row name="launch by launch" times={replay.launched} />
        <Row name="as a replay" times={replay.replayed} />
      </tbody>
      {replay.predicted_host_us !== null && (
        <tfoot>
          <tr>
            <td colSpan={3}>{`The shortest of the timed calls. Before the recording, the host's time for a replay was predicted as ${format.microseconds(replay.predicted_host_us)}.`}</td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}

function Inputs({ inputs }: { inputs: ReplayInput[] }) {
  if (inputs.length === 0) return null;
  return (
    <table class="compact">
      <caption class="visually-hidden">Inputs of the recording</caption>
      <Head columns={["input", "bytes", "in a replay"]} numbers={["bytes"]} />
      <tbody>
        {inputs.map((input) => (
          <tr key={input.name} data-ref={refs.value.buffer(input.name)}>
            <th scope="row">
              <code>{input.name}</code>
            </th>
            <td class="number">{format.bytes(input.bytes)}</td>
            <td>{WAYS[input.way]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Whether the launches of a graph are replayed as one CUDA graph, why, and what that took. */
export function Replays({ graph }: { graph: Graph }) {
  const { replay } = graph;
  if (replay == null) return <Empty>There is nothing to launch.</Empty>;
  const sentence = reasons.value.get(replay.reason)?.sentence;
  return (
    <Scroller label="How launches reach the device" class="replay">
      <p class="note">
        <span class={`verdict-chip ${replay.verdict === "replayed" ? "fused" : "refused"}`}>{replay.verdict === "replayed" ? "replayed" : "launched one by one"}</span>{" "}
        <ReasonName id={replay.reason} />
        {replay.lines.length > 0 && <span class="chip">{`line ${replay.lines.join(", ")}`}</span>} {`${format.sentence(replay.message)}.`}
      </p>
      {sentence !== undefined && (
        <p class="note">
          <Worded text={sentence} />
        </p>
      )}
      <Facts facts={factsOf(replay)} />
      <Times replay={replay} />
      <Inputs inputs={replay.inputs} />
    </Scroller>
  );
}
