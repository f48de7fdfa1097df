/** What the service saw of the GPU's clocks while calls were timed: times of a GPU that is slowed are too long. */
import type { Report } from "./report";

/** "power cap"; empty where nothing slowed it, or where nobody looked. */
export function slowedBy({ observed }: Pick<Report, "observed">): string {
  return observed?.gpu_while_timed?.slowed_by.join(", ") ?? "";
}

/** "The GPU's clock was 1,755 of 1,980 MHz or more, at up to 83 °C." */
export function clockSentence({ observed }: Pick<Report, "observed">): string {
  const gpu = observed?.gpu_while_timed;
  if (!gpu) return "";
  const mhz = (value: number): string => Math.round(value).toLocaleString("en-US");
  const possible = gpu.sm_mhz_possible === null ? "" : ` of ${mhz(gpu.sm_mhz_possible)}`;
  const heat = gpu.temperature_c_most === null ? "" : `, at up to ${Math.round(gpu.temperature_c_most)} °C`;
  return `The GPU's clock was ${mhz(gpu.sm_mhz_least)}${possible} MHz or more${heat}.`;
}
