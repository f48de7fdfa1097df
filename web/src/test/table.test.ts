import { describe, expect, it } from "vitest";
import { grouped, nameOfRef, nextOrder, ofSelection, orders, sorted } from "../components/detail/rows";
import { Links } from "../links";
import { lookAt, viewQuery } from "../view";

describe("the rows of a table", () => {
  it("are sorted by numbers as numbers, with what is not known last in either order", () => {
    const rows = [{ us: 9 }, { us: null }, { us: 100 }, { us: 20 }];
    const values = (isDescending: boolean): (number | null)[] => sorted(rows, (row) => row.us, isDescending).map((row) => row.us);
    expect(values(false)).toEqual([9, 20, 100, null]);
    expect(values(true)).toEqual([100, 20, 9, null]);
  });

  it("are sorted by names as people count", () => {
    expect(sorted(["buf10", "buf2", "buf1"], (name) => name, false)).toEqual(["buf1", "buf2", "buf10"]);
  });

  it("go from one order to the other to none; figures begin with the largest", () => {
    const largest = nextOrder(undefined, "bytes", true);
    expect(largest).toEqual({ column: "bytes", isDescending: true });
    const least = nextOrder(largest ?? undefined, "bytes", true);
    expect(least).toEqual({ column: "bytes", isDescending: false });
    expect(nextOrder(least ?? undefined, "bytes", true)).toBeNull();
    expect(nextOrder(largest ?? undefined, "name", false)).toEqual({ column: "name", isDescending: false });
  });

  it("keep their order in the address", () => {
    lookAt("?sort=traffic.bytes-,nodes.name");
    expect(orders.value.get("traffic")).toEqual({ column: "bytes", isDescending: true });
    expect(orders.value.get("nodes")).toEqual({ column: "name", isDescending: false });
    expect(viewQuery()).toBe("?sort=traffic.bytes-,nodes.name");
    lookAt("");
    expect(viewQuery()).toBe("");
  });

  it("are grouped in the order in which groups are met", () => {
    expect(grouped(["a1", "b1", "a2"], (name) => name[0] ?? "")).toEqual([
      { name: "a", rows: ["a1", "a2"] },
      { name: "b", rows: ["b1"] },
    ]);
  });

  it("are of what is selected, unless that is one of them or has none", () => {
    const links = new Links();
    links.join("kernel:g/2", "aten:g/mul");
    const rows = ["aten:g/mul", "aten:g/sum"];
    const shown = (selected: string | null): readonly string[] => ofSelection(rows, (row) => row, selected, links);
    expect(shown(null)).toEqual(rows);
    expect(shown("kernel:g/2")).toEqual(["aten:g/mul"]);
    expect(shown("aten:g/mul")).toEqual(rows);
    expect(shown("line:9")).toEqual(rows);
  });

  it("say what they are of in words", () => {
    expect(nameOfRef("kernel:graph_0/2")).toBe("K3");
    expect(nameOfRef("line:7")).toBe("line 7");
    expect(nameOfRef("aten:graph_0/mul_1")).toBe("mul_1");
    expect(nameOfRef("edge:graph_0/sin sum_1")).toBe("sin → sum_1");
  });
});
