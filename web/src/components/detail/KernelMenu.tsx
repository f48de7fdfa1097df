import { useEffect, useRef, useState } from "preact/hooks";
import * as format from "../../format";
import { ref } from "../../links";
import type { Kernel } from "../../report";
import { openKernel, predictedFor, refs } from "../../state";
import { KernelTag } from "../KernelTag";
import { Name } from "../Name";
import { type Column, Table } from "./Table";

/** A kernel with its place in launch order, which is what names it: a library function may be called twice. */
interface Placed {
  kernel: Kernel;
  place: number;
}

/** Equal layers have equal kernels: the first of them says how many there are. */
function Repeats({ kernel, kernels }: { kernel: Kernel; kernels: Kernel[] }) {
  if (kernel.same_as) return <span class="chip quiet" title={`The same code as ${kernel.same_as}, except for names`}>same code</span>;
  const count = 1 + kernels.filter((other) => other.same_as === kernel.name).length;
  return count > 1 ? <span class="chip" title="Kernels with the same code, except for names">{`${count} times`}</span> : null;
}

function columnsOf(kernels: Kernel[], isPeer: boolean): Column<Placed>[] {
  const columns: (Column<Placed> & { figure?: keyof Kernel })[] = [
    {
      id: "place",
      head: "kernel",
      by: ({ place }) => place,
      cell: ({ kernel, place }) => (
        <button type="button" class="plain kernel-name">
          {!isPeer && <KernelTag place={place} />}
          <Name text={kernel.name} />
          <Repeats kernel={kernel} kernels={kernels} />
        </button>
      ),
    },
    { id: "kind", head: "kind", isExtra: true, by: ({ kernel }) => kernel.kind, cell: ({ kernel }) => ("own" in kernel && kernel.own ? "your Triton" : KINDS[kernel.kind]) },
    { id: "measured", figure: "measured_us", head: "measured", isNumber: true, by: ({ kernel }) => kernel.measured_us, cell: ({ kernel }) => format.microseconds(kernel.measured_us) },
    { id: "predicted", figure: "predicted_us", head: `for ${predictedFor.value}`, hint: "Predicted by the cost model", isNumber: true, isPredicted: true, by: ({ kernel }) => kernel.predicted_us, cell: ({ kernel }) => format.microseconds(kernel.predicted_us) },
    { id: "bytes", figure: "bytes", head: "bytes", isNumber: true, by: ({ kernel }) => kernel.bytes, cell: ({ kernel }) => format.bytes(kernel.bytes) },
    { id: "rate", figure: "gb_per_s", head: "GB/s", isNumber: true, isExtra: true, by: ({ kernel }) => kernel.gb_per_s, cell: ({ kernel }) => format.rate(kernel.gb_per_s) },
  ];
  return columns.filter(({ figure }) => !figure || kernels.some((kernel) => kernel[figure] !== null && kernel[figure] !== 0));
}

const KINDS: Record<Kernel["kind"], string> = { triton: "Triton", cpp: "C++", extern: "library" };

interface Props {
  kernels: Kernel[];
  selected: number;
  isPeer: boolean;
}

/** The kernels in launch order, told apart by what they cost. A figure that no kernel has is left out. */
export function KernelList({ kernels, selected, isPeer, onPick }: Props & { onPick?(): void }) {
  return (
    <Table
      id="kernels"
      label="Kernels in launch order"
      columns={columnsOf(kernels, isPeer)}
      rows={kernels.map((kernel, place) => ({ kernel, place }))}
      keyOf={({ place }) => place}
      refOf={({ place }) => (isPeer ? ref.peer(place) : refs.value.kernel(place))}
      isPicked={({ place }) => place === selected}
      isUnfiltered
      onPick={({ place }) => {
        openKernel(place, isPeer ? "peer" : "ours");
        onPick?.();
      }}
    />
  );
}

/** `2 of 45`: opens the list over the code, and closes when one is picked. */
export function KernelMenu(props: Props) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const close = (): void => {
    setOpen(false);
    root.current?.querySelector("button")?.focus();
  };
  useEffect(() => {
    if (!isOpen) return undefined;
    root.current?.querySelector<HTMLElement>("[aria-current] button")?.focus();
    const onPointer = (event: PointerEvent): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", onPointer);
    return () => document.removeEventListener("pointerdown", onPointer);
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !isOpen) return;
    event.preventDefault();
    close();
  };
  const { kernels, selected } = props;
  return (
    <div class="kernel-menu" ref={root} onKeyDown={onKeyDown}>
      <button type="button" aria-expanded={isOpen} aria-label={`Kernel ${selected + 1} of ${kernels.length}: choose another`} onClick={() => setOpen(!isOpen)}>
        {`${selected + 1} of ${kernels.length} `}
        <span aria-hidden="true">▾</span>
      </button>
      {isOpen && (
        <div class="kernel-list scroller" role="region" aria-label="Kernels" tabIndex={0} data-scroller>
          <KernelList {...props} onPick={close} />
        </div>
      )}
    </div>
  );
}
