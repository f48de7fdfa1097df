// Written by scripts/report_types.py from compiler/report/timings.py: change it there, and run the script again.

/** What one phase of compiling took, of all graphs together: ours by the clock, the peer's by torch's counters. */
export interface CompilePhase {
  /** Capture is Dynamo and AOTAutograd; a build is what g++ or Triton makes of what was generated. */
  phase: "capture" | "lowering" | "scheduling" | "code generation" | "build";
  /** Seconds of ours; null where none were taken. */
  compiled_seconds: number | null;
  /** Seconds of the peer; null where none were taken. */
  peer_seconds: number | null;
}

/** Wall time of one way to run the same calls, in milliseconds; every sample is kept. */
export interface Contestant {
  /** Which way it is: "eager", "compiled" (ours), "peer", or another by its own name. */
  name: string;
  /** Every sample, in milliseconds, in the order in which they were taken. */
  samples_ms: number[];
  /** The median of the samples, in milliseconds. */
  median_ms: number;
  /** 25th percentile. */
  low_ms: number;
  /** 75th percentile. */
  high_ms: number;
  /** By how much the median of another run may differ, 95 times in 100; null in older reports. */
  spread_ms: number | null;
  /** By which factor the ratio of eager's median to this one may be another in another run, 95 times in 100: 1.04 is 4 %. They are interleaved, so this is not what the two spreads would give. Null where it is not known. */
  ratio_factor: number | null;
  /** Seconds of its first call, compiling included; null where it was not taken. */
  compile_s: number | null;
  /** Whether that ratio is further from 1 than `ratio_factor`; null where it is not known. */
  differs_from_eager: boolean | null;
}

/** Errors of the elements of one output against float64, those left out that are NaN or infinite. */
export interface ElementErrors {
  /** The largest difference of an element. */
  largest: number;
  /** The mean of all differences. */
  mean: number;
  /** The largest in units in the last place: of the output's dtype, at the exact value. */
  largest_ulp: number;
  /** The mean in units in the last place. */
  mean_ulp: number;
}

/** One output of a graph with rounded values, of eager and of compiled, element by element. */
export interface OutputErrors {
  /** Its ATen node. */
  output: string;
  /** Its dtype by torch's name. */
  dtype: string;
  /** How many elements were compared; a complex one is two. */
  elements: number;
  /** Errors of eager PyTorch; null where not comparable. */
  eager: ElementErrors | null;
  /** Errors of ours; null where not comparable. */
  compiled: ElementErrors | null;
}

/** `contestants` are those whose results are right, or could not be checked. */
export interface TimingResult {
  /** How times were taken, in sentences. */
  method: string;
  /** The GPU's name, or cpu. */
  device: string;
  /** On a CPU: the share of its time for which the process waited for a core that others had. */
  waited_share: number | null;
  /** Whether the L2 cache was cleared before each sample. */
  cold_l2: boolean;
  /** The times of each way to run the calls. */
  contestants: Contestant[];
}

/** Something that torch's profiler recorded in one call. The profiler takes time of its own: `timing` has the times that a call takes without it. */
export interface TraceEvent {
  /** "eager", or the graph of ours whose kernels were called. */
  contestant: string;
  /** What ran: an operator, or a kernel of ours with its number on the page. */
  name: string;
  /** The thread of the host, or the stream of the GPU. */
  track: string;
  /** Microseconds since the first event of the call. */
  start_us: number;
  /** Microseconds that it took, those of events within it included. */
  duration_us: number;
}

/** An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph there is none. */
export interface WrongResult {
  /** Whose output it is. */
  contestant: "compiled" | "peer";
  /** The graph that gives it; null for a result of a whole call. */
  graph: string | null;
  /** The function that was called. */
  entry: string | null;
  /** Its name: of a graph's output the ATen node, of a call's "the gradient of x". */
  output: string;
  /** Its relative error against float64; null where it cannot be compared. */
  error: number | null;
  /** That of eager's output; null where the output cannot be compared. */
  eager_error: number | null;
  /** The largest error that was allowed; null where the output cannot be compared. */
  tolerance: number | null;
  /** Which output is wrong and by how much, in a sentence. */
  message: string;
}
