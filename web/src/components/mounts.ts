/** What stands in each place of the frame. */
import type { ComponentType } from "preact";
import { later } from "./later";
import { LessonPanel } from "./lessons/LessonPanel";
import { Welcome } from "./Welcome";

export { MapPane } from "./map";
export const Side = later("Side");
/** It floats over the page. */
export const WhyCard = later("WhyCard");
/** These stand above the editor, in its column. */
export const ABOVE_EDITOR: readonly ComponentType[] = [Welcome, LessonPanel];
