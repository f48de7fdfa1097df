import { describe, expect, it } from "vitest";
import { linksOf, refsOf } from "../links";
import { edgeSentence, fxNodeOf, readsOf, trafficOfEdges, writesOf } from "../moved";
import { planOf } from "../pieces";
import { exampleGraph as graph } from "./example";

const edges = graph.traffic!.edges;
const edgeOf = (tensor: string, consumer: string) => edges.find((one) => one.tensor === tensor && one.consumer === consumer)!;

describe("what moves", () => {
  it("finds the tensor that an edge of the graph carries, through views", () => {
    const traffic = trafficOfEdges(graph);
    expect(traffic.get("mm mul")).toEqual([edgeOf("buf0", "buf1")]);
    expect(traffic.get("arg1_1 permute")).toEqual([edgeOf("arg1_1", "buf0")]);
    // Within one loop nothing moves.
    expect(traffic.has("sub exp")).toBe(false);
    const [first, second, third] = graph.loops;
    const withView = { ...graph, loops: [{ ...first!, origins: ["mm"] }, second!, third!] };
    expect(trafficOfEdges(withView).get("permute mm")).toEqual([edgeOf("arg1_1", "buf0")]);
  });

  it("finds what goes through memory within a node of several loops, of which the last is fused with the reader", () => {
    const edges = graph.traffic!.edges;
    const product = edges.find((edge) => edge.producer === "buf0" && edge.consumer === "buf1")!;
    const split = [
      { ...product, consumer: "buf0_bias", fate: "memory" as const },
      { ...product, tensor: "buf0_bias", producer: "buf0_bias", fate: "register" as const },
    ];
    const bias = { ...graph.loops.find(({ name }) => name === "buf0")!, name: "buf0_bias" };
    const traffic = { ...graph.traffic!, edges: [...edges.filter((edge) => edge !== product), ...split] };
    const carried = trafficOfEdges({ ...graph, loops: [...graph.loops, bias], traffic }).get("mm mul");
    expect(carried?.map(({ fate }) => fate).sort()).toEqual(["memory", "register"]);
    // A second reader in that kernel has the sum in a register, and nothing is read for it.
    const again = { ...graph.loops.find(({ name }) => name === "buf1")!, name: "again", origins: ["again"] };
    const reader = { ...graph.aten.find(({ name }) => name === "mul")!, name: "again" };
    const shared = { ...traffic, edges: [...traffic.edges, { ...split[1]!, consumer: "again" }] };
    const both = trafficOfEdges({ ...graph, aten: [...graph.aten, reader], loops: [...graph.loops, bias, again], traffic: shared });
    expect(both.get("mm mul")?.map(({ fate }) => fate).sort()).toEqual(["memory", "register"]);
    expect(both.get("mm again")?.map(({ fate }) => fate)).toEqual(["register"]);
  });

  it("says what an edge would have cost and what became of it", () => {
    expect(edgeSentence(edgeOf("buf1", "buf2"))).toBe(
      "buf1 → buf2. Through memory it costs a write of 4.19 MB, once for all its readers, and a read of 4.19 MB. Fused, it stays in a register: neither happens.",
    );
    expect(edgeSentence(edgeOf("arg0_1", "buf6"))).toBe("arg0_1 → buf6. Through memory it costs a read of 4.19 MB. It is an input, and is read.");
    const part = { ...edgeOf("arg0_1", "buf6"), fate: "shared_read" as const, saved_read_bytes: 4190304 };
    expect(edgeSentence(part)).toContain("reads 4 kB of that");
  });

  it("tells reads from writes, and eager's tensors from their nodes", () => {
    const [mm] = graph.traffic!.fused!.launches;
    expect(readsOf(mm!.tensors).map((one) => one.tensor)).toEqual(["arg0_1", "arg1_1"]);
    expect(writesOf(mm!.tensors)).toEqual([{ tensor: "buf0", bytes: 4194304 }]);
    expect([fxNodeOf("gradient_mul"), fxNodeOf("max_1.2"), fxNodeOf("mul_1")]).toEqual(["mul", "max_1", "mul_1"]);
  });

  it("joins an edge to its tensor and to both its ends", () => {
    const partners = linksOf([graph]).partners(refsOf(graph).edge("buf1", "buf3"));
    expect(partners).toContain(refsOf(graph).buffer("buf1"));
    expect(partners).toContain(refsOf(graph).loop("buf3"));
    expect(partners).toContain(refsOf(graph).kernel(1));
    expect(partners).not.toContain(refsOf(graph).kernel(0));
  });
});

describe("pieces of memory", () => {
  it("puts what takes over a piece behind what had it, in place from the middle of a launch", () => {
    const plan = planOf(graph, "unfused")!;
    expect(plan.pieces.map((piece) => piece.tenants.map(({ buffer, from, to }) => [buffer.name, from, to]))).toEqual([
      [["buf0", 0, 1.5], ["buf1", 1.5, 3.5], ["buf3", 3.5, 6]],
      [["buf2", 2, 4], ["buf4", 4, 6]],
      [["buf5", 5, 7]],
      [["buf6", 6, 7]],
    ]);
    expect(plan.launches.map((launch) => launch.label)).toEqual(["buf0", "buf1", "buf2", "buf3", "buf4", "buf5", "buf6"]);
    expect(plan.peak).toBe(2 * 4194304 + 4096);
  });

  it("leaves registers and inputs out: they take no memory of ours", () => {
    const names = planOf(graph, "fused")!.pieces.flatMap((piece) => piece.tenants.map(({ buffer }) => buffer.name));
    expect(names).toEqual(["buf0", "buf5", "buf6"]);
  });
});
