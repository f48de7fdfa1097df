import { NO_OPTIONS, type OptionFields, options, parseInputs, setOption } from "../options";
import { sweepProblem } from "../sweep";

type TextField = "entry" | "inputs" | "seed" | "sweep";
type ChoiceField = "device" | "target" | "mode" | "cuda_graphs" | "dynamic" | "training";

const CHOICES: Record<ChoiceField, [string, string][]> = {
  device: [["", "runs on: auto"], ["cpu", "cpu"], ["cuda", "cuda"]],
  target: [["", "GPU: default"], ["sm_75", "sm_75 T4"], ["sm_80", "sm_80 A100"], ["sm_86", "sm_86 A10"], ["sm_89", "sm_89 L4"], ["sm_90", "sm_90 H100"], ["sm_100", "sm_100 B200"]],
  mode: [["", "mode: default"], ["reduce-overhead", "reduce-overhead"], ["max-autotune", "max-autotune"]],
  cuda_graphs: [["", "CUDA graphs: where they pay"], ["on", "CUDA graphs wherever legal"], ["off", "no CUDA graphs"]],
  dynamic: [["", "dynamic: auto"], ["yes", "dynamic shapes"], ["no", "static shapes"]],
  training: [["", "backward: if needed"], ["yes", "with backward"], ["no", "forward only"]],
};

function Choice({ name, label }: { name: ChoiceField; label: string }) {
  return (
    <select aria-label={label} value={options.value[name]} onChange={(event) => setOption(name, event.currentTarget.value)}>
      {CHOICES[name].map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

function Text({ name, label, placeholder, problem }: { name: TextField; label: string; placeholder: string; problem?: string | null }) {
  return (
    <input
      type="text"
      class={`text-${name}`}
      aria-label={label}
      title={problem ?? label}
      aria-invalid={problem ? true : undefined}
      placeholder={placeholder}
      spellcheck={false}
      value={options.value[name]}
      onInput={(event) => setOption(name, event.currentTarget.value)}
    />
  );
}

function Check({ name, label, title }: { name: "peer" | "timing" | "refresh"; label: string; title: string }) {
  return (
    <label class="check" title={title}>
      <input type="checkbox" checked={options.value[name]} onChange={(event) => setOption(name, event.currentTarget.checked)} />
      {label}
    </label>
  );
}

function inputsProblem(fields: OptionFields): string | null {
  try {
    parseInputs(fields.inputs);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Behind "More", which counts those that are set: nothing that matters is out of sight. */
const FOLDED: readonly (keyof OptionFields)[] = ["entry", "device", "mode", "cuda_graphs", "dynamic", "training", "seed", "sweep", "refresh"];

export function OptionsRow() {
  const changed = FOLDED.filter((name) => options.value[name] !== NO_OPTIONS[name]).length;
  return (
    <form class="options" aria-label="Options" onSubmit={(event) => event.preventDefault()}>
      <Text name="inputs" label="Inputs of a lone function" placeholder="inputs, e.g. 64x64 f32" problem={inputsProblem(options.value)} />
      <Choice name="target" label="GPU that Triton kernels are generated for" />
      <Check name="peer" label="Inductor" title="Also compile and time with TorchInductor" />
      <Check name="timing" label="time" title="Time eager and compiled" />
      <details class="more">
        <summary>More{changed > 0 && <span class="badge">{changed}</span>}</summary>
        <div class="more-fields">
          <Text name="entry" label="Name of the function or module to explore" placeholder="entry: found by itself" />
          <Choice name="device" label="Device" />
          <Choice name="mode" label="Mode" />
          <Choice name="cuda_graphs" label="CUDA graphs" />
          <Choice name="dynamic" label="Dynamic shapes" />
          <Choice name="training" label="Backward graph" />
          <Text name="seed" label="Seed" placeholder="seed: 0" />
          <Text name="sweep" label="Other sizes to explore as well" placeholder="sweep, e.g. N = 256, 1024" problem={sweepProblem(options.value.sweep)} />
          <Check name="refresh" label="run again" title="Do not answer from the store" />
          <button type="button" onClick={() => (options.value = NO_OPTIONS)}>
            Reset
          </button>
        </div>
      </details>
    </form>
  );
}
