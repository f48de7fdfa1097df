import { describe, expect, it } from "vitest";
import { shortList } from "../components/CodeView";
import { insideFences } from "../editor/fences";
import { idInPath, pathOf } from "../explore";
import * as format from "../format";
import { fieldsFrom, NO_OPTIONS, parseInputs, requestFrom } from "../options";
import { onlySpans, pytorchPage } from "../sanitise";

describe("figures", () => {
  it("leave out what is not known", () => {
    for (const write of [format.bytes, format.milliseconds, format.microseconds, format.ratio, format.scientific]) {
      expect(write(null)).toBe("");
      expect(write(undefined)).toBe("");
    }
  });

  it("are rounded to what can be read", () => {
    expect(format.bytes(201_326_592)).toBe("201 MB");
    expect(format.bytes(0)).toBe("0 B");
    expect(format.milliseconds(61.4)).toBe("61.4 ms");
    expect(format.milliseconds(0.0228)).toBe("22.8 µs");
    expect(format.milliseconds(23_456)).toBe("23.5 s");
    expect(format.ratio(2.693)).toBe("2.7×");
    expect(format.ratio(22.43)).toBe("22×");
    expect([0, 0.07, 38.2].map(format.percent)).toEqual(["0 %", "< 1 %", "38 %"]);
    expect(format.scientific(1.1e-3)).toBe("1.1e-3");
    expect(format.count(1, "kernel")).toBe("1 kernel");
    expect(format.shape([])).toBe("scalar");
    expect([format.shape([4, "s0"]), format.shape(["s0", "s1 + 3"]), format.shape(["s1 + 3"])]).toEqual(["4×s0", "s0×(s1 + 3)", "s1 + 3"]);
  });

  it("add up as they stand, where they are terms of a sum", () => {
    const terms = [100_663_296, 31_461_376, 53_485_568, 3_145_728];
    const [all, written, read, again, left] = format.bytesInSum([...terms, 18_862_080]).map(Number.parseFloat) as [number, number, number, number, number];
    expect(format.bytesInSum([...terms, 18_862_080])[0]).toBe("100.66 MB");
    expect(Math.abs(all - written - read + again - left)).toBeLessThan(0.025);
    expect(format.bytesInSum([2048, 0, 512])).toEqual(["2.048 kB", "0.000 kB", "0.512 kB"]);
    expect(format.bytesInSum([64, 8])).toEqual(["64 B", "8 B"]);
  });
});

describe("a ratio of times", () => {
  it("has the digits that another run would give, and a spread that never reaches below zero", () => {
    expect([format.ratio(1.034, 1.02), format.ratio(3.379, 1.54)]).toEqual(["1.03×", "3.4×"]);
    expect([format.ratioWithin(3.379, 1.54), format.ratioWithin(22.43, 3.09)]).toEqual([["3.4×", " ± 54 %"], ["22×", ", 7.3–69×"]]);
    expect([1.02, 1.54, 3.09, 1234].map(format.within)).toEqual(["± 2.0 %", "± 54 %", "within a factor of 3.1", "within a factor of 100 or more"]);
  });
});

describe("an address in a report", () => {
  it("leads to PyTorch's documentation or nowhere", () => {
    const page = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0059.html";
    expect(pytorchPage(page)).toBe(page);
    const others = ["javascript:alert(1)//https://pytorch.org/", "https://evil.example/gb0059.html", "https://pytorch.org@evil.example/", "https://evil@pytorch.org/", "https://pytorch.org.evil.example/", "http://pytorch.org/", "//pytorch.org/", "data:text/html,x", "", null];
    expect(others.map(pytorchPage)).toEqual(others.map(() => null));
  });
});

describe("highlighted source", () => {
  it("keeps spans and character references", () => {
    const line = '<span class="k">def</span> f(x) -&gt; <span class="n">x</span>';
    expect(onlySpans(line)).toBe(line);
  });

  it("makes text of everything else", () => {
    expect(onlySpans('<script>alert(1)</script>')).toBe("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(onlySpans('<span class="k" onclick="x()">a</span>')).not.toContain("<span");
    expect(onlySpans('<img src=x onerror=alert(1)>')).not.toContain("<img");
    expect(onlySpans('a & b')).toBe("a &amp; b");
  });

  it("balances what it keeps", () => {
    expect(onlySpans('</span><span class="k">a')).toBe('<span class="k">a</span>');
  });
});

describe("options", () => {
  it("read the inputs of a lone function", () => {
    expect(parseInputs("1024x512 f32, 128 bf16; () int64")).toEqual([
      { shape: [1024, 512], dtype: "float32" },
      { shape: [128], dtype: "bfloat16" },
      { shape: [], dtype: "int64" },
    ]);
    expect(parseInputs("8")).toEqual([{ shape: [8], dtype: "float32" }]);
    expect(() => parseInputs("big")).toThrow(/big/);
  });

  it("take a whole number for a seed, and nothing that only begins as one", () => {
    expect(requestFrom("x", { ...NO_OPTIONS, seed: " -3 " })).toEqual({ source: "x", seed: -3 });
    for (const seed of ["7x", "seven", "1.5"]) expect(() => requestFrom("x", { ...NO_OPTIONS, seed })).toThrow(seed);
  });

  it("leave the server's defaults to the server", () => {
    expect(requestFrom("x", NO_OPTIONS)).toEqual({ source: "x" });
    expect(requestFrom("x", { ...NO_OPTIONS, dynamic: "no", timing: false, refresh: true })).toEqual({
      source: "x",
      dynamic: false,
      timing: { enabled: false },
      cache: "refresh",
    });
  });
});

describe("options of a stored report", () => {
  it("ask again for the same", () => {
    const stored = { inputs: [{ shape: [4, 4], dtype: "float32" }, { shape: [], dtype: "int64" }], dynamic: true, peer: true, peer_mode: "default", contestants: ["aot_eager", "tvm"], mode: "default", target: "sm_80", timing: { enabled: false }, seed: 0, entry: null };
    const fields = fieldsFrom(stored);
    expect(requestFrom("x", fields)).toEqual({
      source: "x",
      inputs: stored.inputs,
      dynamic: true,
      peer: true,
      peer_mode: "default",
      contestants: ["aot_eager", "tvm"],
      target: "sm_80",
      timing: { enabled: false },
    });
  });
});

describe("small things", () => {
  it("names a stored exploration in the address", () => {
    expect(idInPath(pathOf("a1b2"))).toBe("a1b2");
    expect(idInPath("/embed/a1b2")).toBe("a1b2");
    expect(idInPath("/")).toBeNull();
  });

  it("shortens lists of lines", () => {
    expect(shortList([11, 9, 10, 14])).toBe("9–11,14");
    expect(shortList([])).toBe("");
  });
});

describe("fences of Markdown", () => {
  const inside = (text: string) => {
    const code = insideFences(text);
    return code && text.slice(code.from, code.to);
  };

  it("are told from the code between them", () => {
    for (const text of ["```python\nx = 1\n```", "\n```\nx = 1\n```\n\n", "~~~py title\nx = 1\n~~~~  \n", "````\nx = 1\n````"]) expect(inside(text)).toBe("x = 1\n");
    expect(inside('```python\ndef f():\n    """\n    ```\n    """\n```')).toBe('def f():\n    """\n    ```\n    """\n');
    expect(inside("````\n```\n````")).toBe("```\n");
  });

  it("stay where a text is anything else than one block", () => {
    for (const text of ["x = 1\n", "```python\nx = 1\n", "```\nx\n```\nand\n```\ny\n```", "See:\n```\nx\n```", "```x``` is code\n```", "```\nx\n~~~", "```"]) expect(inside(text)).toBeNull();
  });
});
