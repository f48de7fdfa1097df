// Written by scripts/report_types.py from compiler/report/observed.py: change it there, and run the script again.

/** Clocks of the GPU while the snippet had it for itself, to be timed. The service looked from outside. */
export interface GpuWhileTimed {
  /** How often the service looked. */
  looks: number;
  /** The lowest clock of the multiprocessors that was seen, in MHz. */
  sm_mhz_least: number;
  /** The highest clock that the GPU has, in MHz. */
  sm_mhz_possible: number | null;
  /** The highest temperature that was seen, in degrees Celsius. */
  temperature_c_most: number | null;
  /** What slowed it at any of these looks, such as "power cap". Empty if nothing did. */
  slowed_by: string[];
}

/** How the process of the snippet ran and ended, as the service saw it. The snippet cannot change any of this. */
export interface Observed {
  /** Number of this attempt. Earlier attempts were lost with their worker. */
  attempt: number;
  /** Why it ended: "exited" by itself, a limit that it exceeded ("time_limit", "output_limit", "report_limit", "memory_limit", "disk_limit"), "cancelled", or "worker_lost". Empty while it runs. */
  ending: string;
  /** Exit code of the process, if it exited. */
  exit_code: number | null;
  /** Number of the signal that ended the process, if one did. */
  signal: number | null;
  /** Seconds from the snippet's start to its end, or until now while it runs. All waiting is included. */
  wall_seconds: number;
  /** Seconds that it may run, without waiting for the device. */
  wall_limit_seconds: number | null;
  /** Seconds of `wall_seconds` that it waited for the device. */
  waited_seconds: number;
  /** Processor time of all its processes. */
  processor_seconds: number | null;
  /** Most memory of all its processes at one time. */
  peak_memory_bytes: number | null;
  /** The most memory on the GPU at one time. */
  peak_gpu_memory_bytes: number | null;
  /** Clocks of its GPU meanwhile. Null on a CPU, and if the driver gives none. */
  gpu_while_timed: GpuWhileTimed | null;
  /** What confined it: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing. */
  tier: string | null;
  /** The layers of isolation in force, in words. */
  isolation: string[];
  /** Version of Python on the worker. */
  python: string;
  /** Version of torch on the worker. */
  torch: string;
  /** Version of Triton on the worker. Null if it has none. */
  triton: string | null;
  /** The device that it was given: "cpu" or "cuda". */
  device: string;
  /** Name of that device. */
  device_name: string;
  /** Statements of the report that cannot be true, a sentence each. Such a report is not given as an answer again. Figures that cannot be true are left out. */
  contradictions: string[];
}
