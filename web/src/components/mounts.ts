/** What stands in each place of the frame. */
import type { ComponentType } from "preact";
import { Centre } from "./Centre";
import { Side as KernelSide } from "./detail/Side";
import { Welcome } from "./Welcome";

export const MapPane: ComponentType = Centre;
export const Side: ComponentType = KernelSide;
/** These float over the map. */
export const OVER_MAP: readonly ComponentType[] = [];
/** These stand above the editor, in its column. */
export const ABOVE_EDITOR: readonly ComponentType[] = [Welcome];
