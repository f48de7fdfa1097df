import { useEffect, useId, useState } from "preact/hooks";
import type { Report, WhatIf as Outcome } from "../../report";
import { beside, choices, isRunning, openView, reasons } from "../../state";
import { ask, type Pair, type Directives, directivesOf, withoutPair } from "../../whatIf";
import { Scroller } from "../Scroller";
import { Worded } from "../Worded";
import { LinkTo, useChildren } from "./Explorations";
import { ReasonName } from "./ReasonPage";
import { ChangeLine } from "./Try";

function Pairs({ name, pairs, onDrop }: { name: string; pairs: Pair[]; onDrop(pair: Pair): void }) {
  return (
    <>
      {pairs.map((pair) => (
        <span class="chip" key={pair.join()}>
          {`${name} ${pair.join(" and ")} `}
          <button type="button" aria-label={`Do not ${name} ${pair.join(" and ")}`} onClick={() => onDrop(pair)}>
            ×
          </button>
        </span>
      ))}
    </>
  );
}

/** Rules whose sentence has another name than theirs. */
const REASONS: Record<string, string> = {
  layout: "layout.channels_last",
  patches: "layout.patches",
  depthwise: "layout.depthwise",
  folding: "folding.filter",
  padding: "padding.padded",
};
/** Rules that no decision names as its reason. */
const SENTENCES: Record<string, string> = {
  parts: "The kernels that compute the parts of a concatenation write them directly into the result.",
  bias: "The loop that reads a convolution's result adds its bias, instead of a separate pass of the library.",
};

function sentenceOf(rule: string): string {
  return SENTENCES[rule] ?? reasons.value.get(REASONS[rule] ?? `fused.${rule}`)?.sentence ?? "";
}

/** The directives of the next exploration, which begin as those of the one on screen. */
function Form({ report }: { report: Report }) {
  const [directives, setDirectives] = useState<Directives>(directivesOf(report));
  useEffect(() => setDirectives(directivesOf(report)), [report.id]);
  const id = useId();
  const turn = (rule: string, isUsed: boolean): void =>
    setDirectives({ ...directives, rules_off: isUsed ? directives.rules_off.filter((off) => off !== rule) : [...directives.rules_off, rule] });
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    void ask(directives);
  };
  return (
    <form class="filters what-if-form" aria-label="What if" onSubmit={onSubmit}>
      <fieldset>
        <legend>{`Active rules${directives.rules_off.length > 0 ? `, except ${directives.rules_off.length}` : ""}`}</legend>
        <div class="rule-list">
          {choices.value?.rules.map((rule) => (
            <div key={rule}>
              <label class="check">
                <input
                  type="checkbox"
                  checked={!directives.rules_off.includes(rule)}
                  aria-describedby={`${id}-${rule}`}
                  onChange={(event) => turn(rule, event.currentTarget.checked)}
                />
                {rule.replaceAll("_", " ")}
              </label>
              <p class="quiet" id={`${id}-${rule}`}>
                {sentenceOf(rule)}
              </p>
            </div>
          ))}
        </div>
      </fieldset>
      <label class="check">
        largest group
        <input
          type="number"
          min={1}
          placeholder={choices.value?.largest_group.toString()}
          value={directives.largest_group ?? ""}
          onInput={(event) => setDirectives({ ...directives, largest_group: event.currentTarget.valueAsNumber || null })}
        />
      </label>
      <label class="check">
        device that decides
        <select value={directives.device_model ?? ""} onChange={(event) => setDirectives({ ...directives, device_model: event.currentTarget.value || null })}>
          <option value="">{`as now: ${report.environment.decides_for || "the one that kernels are for"}`}</option>
          {choices.value?.device_models.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {(["force", "forbid"] as const).map((name) => (
        <Pairs key={name} name={name} pairs={directives[name]} onDrop={(pair) => setDirectives(withoutPair(directives, pair))} />
      ))}
      <button type="submit" disabled={isRunning.value || !report.id}>
        Explore and compare
      </button>
      <span class="quiet">To force or forbid one fusion, click the pair on the map.</span>
    </form>
  );
}

const TONES: Record<Outcome["outcome"], string> = { done: "fused", refused: "refused", "no effect": "quiet", "unknown name": "refused" };

function Outcomes({ outcomes }: { outcomes: Outcome[] }) {
  if (outcomes.length === 0) return null;
  return (
    <ul class="outcomes" aria-label="Outcome of each option">
      {outcomes.map((told, place) => (
        <li key={place}>
          <b>{`${told.option.replaceAll("_", " ")} ${told.asked.join(" and ")}`}</b>{" "}
          <span class={`verdict-chip ${TONES[told.outcome]}`}>{told.outcome}</span>{" "}
          {told.reason && <ReasonName id={told.reason} />} <Worded text={told.message} />
        </li>
      ))}
    </ul>
  );
}

export function WhatIf({ report }: { report: Report }) {
  const asked = useChildren(report);
  return (
    <Scroller label="Options and outcomes" class="what-if">
      <Form report={report} />
      {report.based_on !== null && (
        <p class="note">
          This asks “what if” of <LinkTo id={report.based_on}>the first exploration</LinkTo>.{" "}
          <button type="button" onClick={() => openView("compare")}>
            Compare both
          </button>
        </p>
      )}
      <Outcomes outcomes={report.what_if} />
      {beside.value && <ChangeLine />}
      {asked.length > 0 && (
        <p class="note">
          {"Based on this one: "}
          {asked.map((child) => (
            <span class="chip" key={child.id}>
              <LinkTo id={child.id}>{child.asked || child.id}</LinkTo>
            </span>
          ))}
        </p>
      )}
    </Scroller>
  );
}
