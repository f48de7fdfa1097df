/**
 * Views that a first look does not need: each is a file of its own, which is fetched when the view is first shown.
 *
 *     const Sweep = later(() => import("./Sweep").then((file) => file.Sweep));
 *
 * Not for a view that keeps something in the address: that has to be known when the address is read.
 */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { Empty } from "./Scroller";

const FAILED = "This part of the page could not be loaded. The service may have been brought up to date meanwhile: load the page again.";

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  const found = signal<ComponentType<Props> | "failed" | null>(null);
  let isAsked = false;
  return function Later(props: Props) {
    if (!isAsked) {
      isAsked = true;
      load().then(
        (component) => (found.value = component),
        () => (found.value = "failed"),
      );
    }
    const View = found.value;
    if (View === "failed") return <Empty>{FAILED}</Empty>;
    return View === null ? <div data-loading aria-busy="true" /> : <View {...props} />;
  };
}
