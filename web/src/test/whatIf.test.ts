import { describe, expect, it, vi } from "vitest";
import { Compare } from "../components/why/Compare";
import { comparedWith, problem, report } from "../state";
import { installComparison, requestWith, withoutPair, withPair, directivesOf } from "../whatIf";
import { exampleReport } from "./example";
import { textOf } from "./textOf";

const shown = { ...exampleReport, id: "first", options: { device: "cpu", entry: null, seed: 3, forbid: [["relu", "sum"]] } };

describe("what if", () => {
  it("asks for all that the first was asked for, and for the directives", () => {
    const request = requestWith(shown, { ...directivesOf(shown), rules_off: ["batch"], largest_group: 4 });
    expect(request).toMatchObject({ device: "cpu", seed: 3, rules_off: ["batch"], largest_group: 4, forbid: [["relu", "sum"]] });
    expect(request).toMatchObject({ based_on: "first", source: exampleReport.source });
    expect(request).not.toHaveProperty("entry");
  });

  it("never asks for both of a pair, whichever way around it is named", () => {
    const directives = withPair(directivesOf(shown), "force", ["sum", "relu"]);
    expect(directives).toMatchObject({ force: [["sum", "relu"]], forbid: [] });
    expect(withPair(directives, "forbid", ["relu", "sum"])).toMatchObject({ force: [], forbid: [["relu", "sum"]] });
    expect(withoutPair(directives, ["relu", "sum"]).force).toEqual([]);
  });

  it("has no directives where none were asked for", () => {
    const none = { force: [], forbid: [], rules_off: [], largest_group: null, device_model: null };
    expect(directivesOf({ ...exampleReport, options: {} })).toEqual(none);
  });
});

describe("two explorations", () => {
  it("are not said to be compared where the other one is not there", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status: 404 })));
    const alone = { ...shown, based_on: null };
    report.value = alone;
    comparedWith.value = "removed";
    installComparison();
    const told = () => textOf(Compare({ report: alone }).props.children.at(-1));
    expect(told()).toBe("Comparing.");
    await vi.waitFor(() => expect(told()).toContain("There is no such exploration"));
    comparedWith.value = null;
    expect(told()).toBe("Choose an exploration to see beside this one.");
    report.value = problem.value = null;
  });
});
