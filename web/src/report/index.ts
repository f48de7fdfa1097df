// Written by scripts/report_types.py from compiler/report/: change it there, and run the script again.

export type * from "./capture";
export type * from "./decisions";
export type * from "./kernels";
export type * from "./loops";
export type * from "./machine_code";
export type * from "./memory";
export type * from "./observed";
export type * from "./peers";
export type * from "./replays";
export type * from "./sweep";
export type * from "./timings";
export type * from "./traffic";
export type * from "./whole";

/** Of the reports that these types are of. */
export const REPORT_VERSION = 5;
