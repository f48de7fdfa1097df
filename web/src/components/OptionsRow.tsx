import type { ComponentChildren } from "preact";
import { CONTESTANTS } from "../format";
import { NO_OPTIONS, type OptionFields, options, parseInputs, parseSeed, setOption, withContestant } from "../options";
import { sweepProblem } from "../sweep";
import { typed } from "../typing";

type TextField = "entry" | "inputs" | "seed" | "sweep";
type ChoiceField = "device" | "target" | "mode" | "peer_mode" | "cuda_graphs" | "dynamic" | "training" | "trace";

interface Choice {
  name: ChoiceField;
  label: string;
  says: string;
  values: [string, string][];
}

const CHOICES: Choice[] = [
  {
    name: "target",
    label: "Kernels for",
    says: "The GPU that Triton kernels are generated for.",
    values: [
      ["", "default of the server"],
      ["sm_75", "T4 (sm_75)"],
      ["sm_80", "A100 (sm_80)"],
      ["sm_86", "A10 (sm_86)"],
      ["sm_89", "L4 (sm_89)"],
      ["sm_90", "H100 (sm_90)"],
      ["sm_100", "B200 (sm_100)"],
    ],
  },
  { name: "device", label: "Runs", says: "The device of the tensors and of the measurements.", values: [["", "best of the server"], ["cpu", "on the CPU"], ["cuda", "on the GPU"]] },
  { name: "mode", label: "Mode", says: "The mode of torch.compile.", values: [["", "default"], ["reduce-overhead", "less host time (reduce-overhead)"], ["max-autotune", "tries more (max-autotune)"]] },
  { name: "cuda_graphs", label: "CUDA graphs", says: "Whether launches are replayed as one CUDA graph.", values: [["", "where they save time"], ["on", "wherever they are legal"], ["off", "never"]] },
  { name: "dynamic", label: "Sizes stay open", says: "Whether one compilation serves many sizes.", values: [["", "after a second size"], ["yes", "open from the first call"], ["no", "every size by itself"]] },
  { name: "training", label: "Backward graph", says: "Whether the backward pass is captured as well.", values: [["", "where something needs a gradient"], ["yes", "always"], ["no", "never"]] },
  { name: "trace", label: "Profiler's trace", says: "Whether torch's profiler records a call: see Timeline, and Export for Perfetto.", values: [["", "no"], ["yes", "record one call of each"]] },
];

const PEER_MODE: Choice = {
  name: "peer_mode",
  label: "TorchInductor's mode",
  says: "The mode of TorchInductor.",
  values: [["", "the mode above"], ["default", "default"], ["reduce-overhead", "less host time (reduce-overhead)"], ["max-autotune", "tries more (max-autotune)"]],
};

function change<Name extends keyof OptionFields>(name: Name, value: OptionFields[Name]): void {
  setOption(name, value);
  typed();
}

/** Its label, and what it does, in a sentence. */
function Field({ label, says, children }: { label: string; says: string; children: ComponentChildren }) {
  return (
    <label class="option" title={says}>
      <span>{label}</span>
      {children}
    </label>
  );
}

function Text({ name, placeholder, problem }: { name: TextField; placeholder: string; problem?: string | null }) {
  return (
    <>
      <input
        type="text"
        aria-invalid={problem ? true : undefined}
        placeholder={placeholder}
        spellcheck={false}
        value={options.value[name]}
        onInput={(event) => change(name, event.currentTarget.value)}
      />
      {problem && <span class="option-problem">{problem}</span>}
    </>
  );
}

function Check({ name, label, says }: { name: "peer" | "timing" | "refresh"; label: string; says: string }) {
  return (
    <label class="check" title={says}>
      <input type="checkbox" checked={options.value[name]} onChange={(event) => change(name, event.currentTarget.checked)} />
      {label}
    </label>
  );
}

function Select({ name, label, says, values, isOff = false }: Choice & { isOff?: boolean }) {
  return (
    <Field label={label} says={says}>
      <select value={options.value[name]} disabled={isOff} onChange={(event) => change(name, event.currentTarget.value)}>
        {values.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Who else runs the same calls: those that are always there, and those that were asked for by name. */
function Contestants() {
  const asked = options.value.contestants.split(",").filter(Boolean);
  const offered = Object.keys(CONTESTANTS).filter((name) => name !== "peer");
  return (
    <div class="contestants" role="group" aria-label="Also timed">
      {[...new Set([...offered, ...asked])].map((name) => (
        <label class="check" key={name} title={`Compiles and times it with ${name} as well, in turn with all others.`}>
          <input
            type="checkbox"
            checked={asked.includes(name)}
            onChange={(event) => change("contestants", withContestant(options.value.contestants, name, event.currentTarget.checked))}
          />
          {CONTESTANTS[name] ?? name}
        </label>
      ))}
    </div>
  );
}

function problemOf(parse: (text: string) => unknown, text: string): string | null {
  try {
    if (text.trim()) parse(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Behind "Options", which counts those that are set: nothing that matters is out of sight. */
const FOLDED: readonly (keyof OptionFields)[] = ["entry", "inputs", "target", "device", "mode", "peer_mode", "contestants", "cuda_graphs", "dynamic", "training", "trace", "seed", "sweep", "refresh"];

function Folded() {
  return (
    <div class="more-fields">
      <fieldset>
        <legend>What runs</legend>
        <Field label="Function or module" says="The function or module to explore. It is found automatically if the snippet calls one.">
          <Text name="entry" placeholder="found automatically" />
        </Field>
        <Field label="Inputs" says="Inputs of a function that the snippet does not call: sizes and a dtype for each.">
          <Text name="inputs" placeholder="64x64 f32, 64 i64" problem={problemOf(parseInputs, options.value.inputs)} />
        </Field>
        <Field label="Seed" says="The seed of all random numbers.">
          <Text name="seed" placeholder="0" problem={problemOf(parseSeed, options.value.seed)} />
        </Field>
        <Field label="Other sizes" says="Explores the snippet at other sizes as well, and marks where decisions change.">
          <Text name="sweep" placeholder="N = 256, 1024" problem={sweepProblem(options.value.sweep)} />
        </Field>
      </fieldset>
      <fieldset>
        <legend>How it is compiled</legend>
        {CHOICES.map((choice) => (
          <Select key={choice.name} {...choice} />
        ))}
      </fieldset>
      <fieldset>
        <legend>What it is compared with</legend>
        <Select {...PEER_MODE} isOff={!options.value.peer} />
        <Contestants />
      </fieldset>
      <div class="option-end">
        <Check name="refresh" label="Run again" says="Runs again even if the answer is stored." />
        <button type="button" onClick={() => ((options.value = NO_OPTIONS), typed())}>
          Reset
        </button>
      </div>
    </div>
  );
}

export function OptionsRow() {
  const changed = FOLDED.filter((name) => options.value[name] !== NO_OPTIONS[name]).length;
  return (
    <form class="options" aria-label="Options" onSubmit={(event) => event.preventDefault()}>
      <Check name="timing" label="Measure" says="Times eager and compiled calls." />
      <Check name="peer" label="With TorchInductor" says="Compiles and times it with TorchInductor as well." />
      <details class="more">
        <summary>Options{changed > 0 && <span class="badge">{changed}</span>}</summary>
        <Folded />
      </details>
    </form>
  );
}
