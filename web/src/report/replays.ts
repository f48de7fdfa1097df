// Written by scripts/report_types.py from compiler/report/replays.py: change it there, and run the script again.

/** One call of a graph, measured: until the host has returned, and between the events before its first launch and after its last, in microseconds; the least of the calls that were timed. */
export interface CallTimes {
  /** Microseconds until the host has returned. */
  measured_host_us: number;
  /** Microseconds on the device, from before the first launch until after the last. */
  measured_elapsed_us: number;
}

/** Whether the launches of a graph are recorded and replayed as one CUDA graph, and why. What is told of a recording is empty where there is none. */
export interface Replay {
  /** How launches reach the device. */
  verdict: "replayed" | "one_by_one";
  /** Id of the reason, as in GET /api/v1/reasons. */
  reason: string;
  /** The reason in a sentence. */
  message: string;
  /** The numbers that the reason speaks of, by name. */
  numbers: Record<string, unknown>;
  /** The option `cuda_graphs`, as the mode changes it. */
  option: "auto" | "on" | "off";
  /** The library call that prevents a replay. */
  node: string | null;
  /** Lines of the snippet that the library call came from. */
  lines: number[];
  /** Launches of a call, library calls included. */
  launches: number;
  /** Library calls among the launches. */
  library_calls: number;
  /** Launches that were recorded. */
  recorded_launches: number | null;
  /** Library calls that were recorded. */
  recorded_library_calls: number | null;
  /** How each input of a recording is read. */
  inputs: ReplayInput[];
  /** Bytes that are copied to the recording's memory in each call. */
  copied_in_bytes: number | null;
  /** Bytes that are copied out of it in each call. */
  copied_out_bytes: number | null;
  /** Bytes that a forward graph saves and gives without a copy. */
  held_bytes: number | null;
  /** Bytes of the pool that all recordings on one stream share. torch counts them. */
  pool_bytes: number | null;
  /** How many recordings were made. */
  recordings: number;
  /** Calls that were replays so far, the timed ones included. */
  replays: number;
  /** Calls that were launched one by one despite a recording. */
  launched_calls: number;
  /** Times of a call launch by launch. */
  launched: CallTimes | null;
  /** Times of a replay. */
  replayed: CallTimes | null;
  /** Predicted microseconds of a replay on the host. */
  predicted_host_us: number | null;
}

/** An input of a recording: "in_place" is read where the caller has it, "copied" goes to the recording's memory in each call, "held" lies in that of the graph that made it, which gives it without a copy. */
export interface ReplayInput {
  /** The input's name in `aten`. */
  name: string;
  /** Bytes of all its elements. */
  bytes: number;
  /** Where a replay reads it. */
  way: "in_place" | "copied" | "held";
}
