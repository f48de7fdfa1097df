// Written by scripts/report_types.py from compiler/report/timings.py: change it there, and run the script again.

/** What one phase of compiling took, of all graphs together: ours by the clock, the peer's by torch's counters. */
export interface CompilePhase {
  /** Capture is Dynamo and AOTAutograd. Build is the compilation by g++ or Triton. */
  phase: "capture" | "lowering" | "scheduling" | "code generation" | "build";
  /** Our seconds. Null if none were taken. */
  compiled_seconds: number | null;
  /** The peer's seconds. Null if none were taken. */
  peer_seconds: number | null;
}

/** Wall time of one way to run the same calls, in milliseconds; every sample is kept. */
export interface Contestant {
  /** "eager", "compiled" (ours), "peer", or the name of another contestant. */
  name: string;
  /** Every sample, in milliseconds, in the order in which they were taken. */
  samples_ms: number[];
  /** The median of the samples, in milliseconds. */
  median_ms: number;
  /** The 25th percentile of the samples, in milliseconds. */
  low_ms: number;
  /** The 75th percentile of the samples, in milliseconds. */
  high_ms: number;
  /** How much the median of another run may differ, in 95 of 100 runs. Null in older reports. */
  spread_ms: number | null;
  /** The factor by which the ratio of eager's median to this one may differ in another run, in 95 of 100 runs. 1.04 is 4 %. Samples are interleaved, so the two spreads do not give this factor. Null if unknown. */
  ratio_factor: number | null;
  /** Seconds of the first call, compiling included. Null if it was not timed. */
  compile_s: number | null;
  /** Whether the ratio to eager is further from 1 than `ratio_factor`. */
  differs_from_eager: boolean | null;
}

/** Errors of the elements of one output against float64, those left out that are NaN or infinite. */
export interface ElementErrors {
  /** The largest difference of an element. */
  largest: number;
  /** The mean of all differences. */
  mean: number;
  /** The largest difference in units in the last place of the output's dtype, at the exact value. */
  largest_ulp: number;
  /** The mean difference in units in the last place. */
  mean_ulp: number;
}

/** One output of a graph with rounded values, of eager and of compiled, element by element. */
export interface OutputErrors {
  /** The ATen node of the output. */
  output: string;
  /** Its dtype by torch's name. */
  dtype: string;
  /** How many elements were compared. A complex element counts as two. */
  elements: number;
  /** Errors of eager PyTorch. Null if not comparable. */
  eager: ElementErrors | null;
  /** Errors of our kernels. Null if not comparable. */
  compiled: ElementErrors | null;
}

/** `contestants` are those whose results are right, or could not be checked. */
export interface TimingResult {
  /** How times were taken, in sentences. */
  method: string;
  /** The GPU's name, or cpu. */
  device: string;
  /** The share of its time in which the process waited for a CPU core. */
  waited_share: number | null;
  /** Whether the L2 cache was cleared before each sample. */
  cold_l2: boolean;
  /** The times of each way to run the calls. */
  contestants: Contestant[];
}

/** Something that torch's profiler recorded in one call. The profiler takes time of its own: `timing` has the times that a call takes without it. */
export interface TraceEvent {
  /** "eager", or the name of our graph whose kernels were called. */
  contestant: string;
  /** What ran: an operator, or a kernel of ours with its number on the page. */
  name: string;
  /** The thread of the host, or the stream of the GPU. */
  track: string;
  /** Microseconds since the first event of the call. */
  start_us: number;
  /** Microseconds that it took, the events within it included. */
  duration_us: number;
}

/** An output that rounding does not explain. Of its contestant there is no time, and of the kernels of its graph there is none. */
export interface WrongResult {
  /** The contestant that gave it. */
  contestant: "compiled" | "peer";
  /** The graph that gives it. Null for a whole call's result. */
  graph: string | null;
  /** The function that was called. */
  entry: string | null;
  /** Its name: the ATen node of a graph's output, or "the gradient of x". */
  output: string;
  /** Its relative error against float64. Null if not comparable. */
  error: number | null;
  /** Relative error of eager's output. Null if not comparable. */
  eager_error: number | null;
  /** The largest error that was allowed. Null if not comparable. */
  tolerance: number | null;
  /** Which output is wrong and by how much, in a sentence. */
  message: string;
}
