// Written by scripts/report_types.py from compiler/report/observed.py: change it there, and run the script again.

/** Clocks of the GPU while the snippet had it for itself, to be timed. The service looked from outside. */
export interface GpuWhileTimed {
  /** How often the service looked. */
  looks: number;
  /** Lowest clock of its multiprocessors that was seen, in MHz. */
  sm_mhz_least: number;
  /** Highest clock that it has, in MHz. */
  sm_mhz_possible: number | null;
  /** Highest temperature that was seen, in degrees Celsius. */
  temperature_c_most: number | null;
  /** What slowed it at any of these looks, such as "power cap"; empty where nothing did. */
  slowed_by: string[];
}

/** How the process of the snippet ran and ended, as the service saw it. The snippet cannot change any of this. */
export interface Observed {
  /** Which attempt this is: earlier ones were lost with their worker. */
  attempt: number;
  /** Why it was over, empty while it runs: "exited" by itself, a limit that it overstepped ("time_limit", "output_limit", "report_limit", "memory_limit", "disk_limit"), "cancelled", or "worker_lost". */
  ending: string;
  /** Exit code of the process, where it exited. */
  exit_code: number | null;
  /** Number of the signal that ended the process, if one did. */
  signal: number | null;
  /** From the snippet's start to its end, or until now while it runs; all waiting included. */
  wall_seconds: number;
  /** How long it may run, without waiting for the device; null where it has not begun. */
  wall_limit_seconds: number | null;
  /** Of these: waiting until others had timed on the device. */
  waited_seconds: number;
  /** Processor time of all its processes. */
  processor_seconds: number | null;
  /** Most memory of all its processes at one time. */
  peak_memory_bytes: number | null;
  /** Most memory on the GPU at one time. */
  peak_gpu_memory_bytes: number | null;
  /** Clocks of its GPU meanwhile; null on a CPU, or where the driver says nothing. */
  gpu_while_timed: GpuWhileTimed | null;
  /** What confined it: "A" namespaces, "B" Landlock and seccomp, "trusted" nothing, by the operator. */
  tier: string | null;
  /** The layers of that in force, in words. */
  isolation: string[];
  /** Version of Python on the worker. */
  python: string;
  /** Version of torch on the worker. */
  torch: string;
  /** Version of Triton on the worker, where it has one. */
  triton: string | null;
  /** "cpu" or "cuda": what it was given. */
  device: string;
  /** Name of that device. */
  device_name: string;
  /** What the report says and cannot be, a sentence each. Such a report is not given as an answer again, and the figures that cannot be are left out. */
  contradictions: string[];
}
