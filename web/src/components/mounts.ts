/** What stands in each place of the frame. */
import type { ComponentType } from "preact";
import { Centre } from "./Centre";
import { KernelsPane } from "./KernelsPane";
import { LessonPanel } from "./lessons/LessonPanel";
import { Welcome } from "./Welcome";

export const MapPane: ComponentType = Centre;
export const Side: ComponentType = KernelsPane;
/** These float over the map. */
export const OVER_MAP: readonly ComponentType[] = [];
/** These stand above the editor, in its column. */
export const ABOVE_EDITOR: readonly ComponentType[] = [Welcome, LessonPanel];
