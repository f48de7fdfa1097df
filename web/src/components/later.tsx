/**
 * What a first look does not need: `details.ts` has it, one file that is fetched when the first part of it is shown.
 *
 *     const Sweep = later("Sweep");
 */
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { Empty } from "./Scroller";

const FAILED = "This part of the page could not be loaded. The service may have been updated: reload the page.";

type Details = typeof import("./details");

export function later<Name extends keyof Details>(name: Name): Details[Name] {
  const found = signal<ComponentType<object> | "failed" | null>(null);
  let isAsked = false;
  const Later = (props: object) => {
    if (!isAsked) {
      isAsked = true;
      import("./details").then(
        (details) => (found.value = details[name] as ComponentType<object>),
        () => (found.value = "failed"),
      );
    }
    const View = found.value;
    if (View === "failed") return <Empty>{FAILED}</Empty>;
    return View === null ? <div data-loading aria-busy="true" /> : <View {...props} />;
  };
  return Later as unknown as Details[Name];
}
