/** The map: all graphs of an exploration in one picture, and what is asked and chosen on it. */
export { MapPane } from "./MapPane";
export { anchorOf, anchorOfPair } from "./places";
export { view as mapView } from "./camera";
