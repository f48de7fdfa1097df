/** What stands in each place of the frame. */
import type { ComponentType } from "preact";
import { Side as KernelSide } from "./detail/Side";
import { LessonPanel } from "./lessons/LessonPanel";
import { MapPane as Map } from "./map";
import { Welcome } from "./Welcome";
import { WhyCard } from "./why/WhyCard";

export const MapPane: ComponentType = Map;
export const Side: ComponentType = KernelSide;
/** These float over the page. */
export const OVER_PAGE: readonly ComponentType[] = [WhyCard];
/** These float over the map. */
export const OVER_MAP: readonly ComponentType[] = [];
/** These stand above the editor, in its column. */
export const ABOVE_EDITOR: readonly ComponentType[] = [Welcome, LessonPanel];
