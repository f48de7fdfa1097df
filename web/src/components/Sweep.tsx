import * as format from "../format";
import { options, setOption } from "../options";
import type { Flip, NamedSize, Report, SweepResult, SweptPair, SweptSize } from "../report";
import { isRunning, predictedFor, reasons } from "../state";
import { isFlipping, outcomeWord, sweepAround, sweepProblem, sweepText } from "../sweep";
import { wrongOf } from "../wrong";
import { exploreNow } from "./run";
import { Scroller } from "./Scroller";
import { SweepPlot } from "./SweepPlot";

function Ask({ sizes }: { sizes: NamedSize[] }) {
  const text = options.value.sweep;
  const problem = sweepProblem(text);
  return (
    <form
      class="filters ask-sweep"
      aria-label="Sweep"
      onSubmit={(event) => {
        event.preventDefault();
        exploreNow();
      }}
    >
      <label for="sweep-text">Sizes to explore</label>
      <input
        id="sweep-text"
        type="text"
        spellcheck={false}
        placeholder="N = 256, 1024, 4096"
        aria-invalid={problem ? true : undefined}
        aria-describedby="sweep-help"
        value={text}
        onInput={(event) => setOption("sweep", event.currentTarget.value)}
      />
      <button type="submit" disabled={isRunning.value || !text.trim() || problem !== null}>
        Sweep
      </button>
      <span id="sweep-help" class={problem ? "sweep-problem" : "quiet"}>
        {problem ?? (sizes.length > 0 ? "or begin with one of the snippet's:" : "A number of the snippet's top level, or x.shape[0] of an annotated argument.")}
      </span>
      {sizes.map((size) => (
        <button type="button" class="size-offered" key={size.name} title={`Around ${size.value}`} onClick={() => setOption("sweep", sweepText(sweepAround(size)))}>
          {size.name === String(size.value) ? size.name : `${size.name} = ${size.value}`}
        </button>
      ))}
    </form>
  );
}

function flipText({ kind, about, before, after }: Flip): string {
  const what = kind === "choice" ? `the loops of ${about}` : about;
  return `${what}: ${before} → ${after}`;
}

function FlipList({ size }: { size: SweptSize }) {
  if (size.error !== null) return <span class="sweep-problem">{size.error}</span>;
  return (
    <ul class="flips">
      {wrongOf(size, "compiled").map((one) => (
        <li key={one.message} class="sweep-problem">{`wrong result: ${one.message}`}</li>
      ))}
      {size.flips.map((flip) => (
        <li key={flipText(flip)}>
          <span class={`chip flip-${flip.kind}`}>{flip.kind}</span> {flipText(flip)}
        </li>
      ))}
      {size.more_flips > 0 && <li class="quiet">and {size.more_flips} more</li>}
    </ul>
  );
}

function Sizes({ sweep, device }: { sweep: SweepResult; device: string }) {
  const isMeasured = sweep.sizes.some((size) => size.eager_ms !== null || size.compiled_ms !== null);
  return (
    <table class="compact sweep-sizes">
      <caption class="visually-hidden">The snippet at each size</caption>
      <thead>
        <tr>
          <th scope="col" class="number">{sweep.name}</th>
          <th scope="col" class="number">launches</th>
          <th scope="col" class="number">bytes</th>
          <th scope="col" class="number">kernels, predicted for {predictedFor.value}</th>
          {isMeasured && <th scope="col" class="number">kernels, measured on {device}</th>}
          {isMeasured && <th scope="col" class="number">eager</th>}
          {isMeasured && <th scope="col" class="number">compiled</th>}
          <th scope="col">flips</th>
        </tr>
      </thead>
      <tbody>
        {sweep.sizes.map((size) => (
          <tr key={size.value} class={isFlipping(size) ? "flipping" : ""} data-size={size.value}>
            <th scope="row" class="number">{size.value.toLocaleString("en-US")}</th>
            <td class="number">{size.launches}</td>
            <td class="number">{format.bytes(size.bytes)}</td>
            <td class="number">{format.microseconds(size.predicted_us)}</td>
            {isMeasured && <td class="number">{format.microseconds(size.measured_us)}</td>}
            {isMeasured && <td class="number">{format.milliseconds(size.eager_ms)}</td>}
            {isMeasured && <td class="number">{format.milliseconds(size.compiled_ms)}</td>}
            <td class="message">
              <FlipList size={size} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function PairRow({ pair, sweep }: { pair: SweptPair; sweep: SweepResult }) {
  return (
    <tr class={pair.flips ? "flipping" : ""}>
      <th scope="row">{`${pair.a} + ${pair.b}`}</th>
      {pair.outcomes.map((outcome, place) => (
        <td key={sweep.sizes[place]?.value} title={reasons.value.get(outcome?.reason ?? "")?.sentence}>
          {outcome && <span class={`verdict-chip ${outcome.together ? "fused" : "refused"}`}>{outcomeWord(outcome)}</span>}
          {outcome && <div class="quiet small">{outcome.reason ?? outcome.verdict}</div>}
        </td>
      ))}
    </tr>
  );
}

function Pairs({ sweep }: { sweep: SweepResult }) {
  if (sweep.pairs.length === 0) return null;
  const flipping = sweep.pairs.filter((pair) => pair.flips).length;
  return (
    <details class="sweep-pairs" open={flipping > 0}>
      <summary>
        {format.count(sweep.pairs.length + sweep.more_pairs, "pair")} of nodes, {flipping} with another outcome from size to size
      </summary>
      <table class="compact">
        <thead>
          <tr>
            <th scope="col">pair</th>
            {sweep.sizes.map((size) => (
              <th scope="col" key={size.value}>{`${sweep.name} = ${size.value.toLocaleString("en-US")}`}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sweep.pairs.map((pair) => (
            <PairRow key={`${pair.graph} ${pair.a} ${pair.b}`} pair={pair} sweep={sweep} />
          ))}
        </tbody>
      </table>
      {sweep.more_pairs > 0 && <p class="note quiet">{sweep.more_pairs} more pairs are not listed.</p>}
    </details>
  );
}

export function Sweep({ report }: { report: Report | null }) {
  const sweep = report?.sweep ?? null;
  return (
    <div class="sweep">
      <Ask sizes={report?.sizes ?? []} />
      {report && sweep && (
        <Scroller label="Sizes of the sweep">
          <p class="note">
            <strong>{sweep.verdict}</strong> {sweep.message}
          </p>
          <div class="sweep-columns">
            <SweepPlot sweep={sweep} device={report.environment.device_name || report.environment.device} />
            <Sizes sweep={sweep} device={report.environment.device_name || report.environment.device} />
          </div>
          <Pairs sweep={sweep} />
        </Scroller>
      )}
    </div>
  );
}
