import { describe, expect, it } from "vitest";
import { flag, inAddress, lookAt, number, oneOf, text, viewQuery } from "../view";

const at = inAddress<string | null>("at", null, text);
const round = inAddress<number | null>("round", null, number);
const by = inAddress("by", "ours", oneOf("ours", "peer", "both"));
const fold = inAddress("fold", true, flag);

describe("what one looks at, in the address", () => {
  it("leaves out what stands at its default", () => {
    lookAt("");
    expect(viewQuery()).toBe("");
  });

  it("is restored by the query that it wrote, whatever stands in names", () => {
    at.value = "edge:graph_0/a&b=c buf 1?#ü+%";
    round.value = 3;
    by.value = "both";
    fold.value = false;
    const query = viewQuery();
    lookAt("");
    expect([at.value, round.value, by.value, fold.value]).toEqual([null, null, "ours", true]);
    lookAt(query);
    expect([at.value, round.value, by.value, fold.value]).toEqual(["edge:graph_0/a&b=c buf 1?#ü+%", 3, "both", false]);
    expect(viewQuery()).toBe(query);
  });

  it("reads as a person would write it", () => {
    lookAt("?at=kernel:graph_0/3&round=2");
    expect(viewQuery()).toBe("?at=kernel:graph_0/3&round=2");
  });

  it("takes its default for what means nothing", () => {
    lookAt("?round=many&by=somebody&unknown=1");
    expect([round.value, by.value]).toEqual([null, "ours"]);
  });

  it("keeps what no view has asked for yet, and gives it to one that is fetched later", () => {
    lookAt("?round=2&axis=bytes");
    expect(viewQuery()).toBe("?round=2&axis=bytes");
    const axis = inAddress<string | null>("axis", null, text);
    expect(axis.value).toBe("bytes");
    lookAt("?round=3");
    expect([axis.value, viewQuery()]).toEqual([null, "?round=3"]);
  });

  it("gives a name once", () => {
    expect(() => inAddress("at", null, text)).toThrow("at");
  });
});
