import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Child, getChildren } from "../api";
import { open, pathOf } from "../explore";
import type { Report, WhatIf as Outcome } from "../report";
import { beside, choices, isRunning, problem, reasons } from "../state";
import { ask, type Pair, type Wishes, wishesOf, withoutPair } from "../whatIf";
import { Comparison } from "./Comparison";
import { Scroller } from "./Scroller";

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

/** The wishes of the next exploration, which begin as those of the one on screen. */
function Form({ report }: { report: Report }) {
  const [wishes, setWishes] = useState<Wishes>(wishesOf(report));
  useEffect(() => setWishes(wishesOf(report)), [report.id]);
  const turn = (rule: string, isUsed: boolean): void =>
    setWishes({ ...wishes, rules_off: isUsed ? wishes.rules_off.filter((off) => off !== rule) : [...wishes.rules_off, rule] });
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    void ask(wishes);
  };
  return (
    <form class="filters what-if-form" aria-label="What if" onSubmit={onSubmit}>
      <fieldset>
        <legend>rules that are used</legend>
        {choices.value?.rules.map((rule) => (
          <label class="check" key={rule} title={reasons.value.get(`fused.${rule}`)?.sentence}>
            <input type="checkbox" checked={!wishes.rules_off.includes(rule)} onChange={(event) => turn(rule, event.currentTarget.checked)} />
            {rule}
          </label>
        ))}
      </fieldset>
      <label class="check">
        largest group
        <input
          type="number"
          min={1}
          placeholder={choices.value?.largest_group.toString()}
          value={wishes.largest_group ?? ""}
          onInput={(event) => setWishes({ ...wishes, largest_group: event.currentTarget.valueAsNumber || null })}
        />
      </label>
      <label class="check">
        device that decides
        <select value={wishes.device_model ?? ""} onChange={(event) => setWishes({ ...wishes, device_model: event.currentTarget.value || null })}>
          <option value="">{`as now: ${report.environment.decides_for || "the one that kernels are for"}`}</option>
          {choices.value?.device_models.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {(["force", "forbid"] as const).map((name) => (
        <Pairs key={name} name={name} pairs={wishes[name]} onDrop={(pair) => setWishes(withoutPair(wishes, pair))} />
      ))}
      <button type="submit" disabled={isRunning.value || !report.id}>
        Explore and compare
      </button>
      <span class="quiet">a click on a decision has the buttons that forbid or force one fusion</span>
    </form>
  );
}

const TONES: Record<Outcome["outcome"], string> = { done: "fused", refused: "refused", "no effect": "quiet", "unknown name": "refused" };

function Outcomes({ outcomes }: { outcomes: Outcome[] }) {
  if (outcomes.length === 0) return null;
  return (
    <ul class="outcomes" aria-label="What came of it">
      {outcomes.map((told, place) => (
        <li key={place}>
          <b>{`${told.option.replaceAll("_", " ")} ${told.asked.join(" and ")}`}</b>{" "}
          <span class={`verdict-chip ${TONES[told.outcome]}`}>{told.outcome}</span>{" "}
          {told.reason && (
            <a href={`/api/v1/reasons/${encodeURIComponent(told.reason)}`} target="_blank" rel="noreferrer">
              <code>{told.reason}</code>
            </a>
          )}{" "}
          {told.message}
        </li>
      ))}
    </ul>
  );
}

function LinkTo({ id, children }: { id: string; children: JSX.Element | string }) {
  const go = (event: MouseEvent): void => {
    event.preventDefault();
    history.pushState(null, "", pathOf(id));
    void open(id);
  };
  return (
    <a href={pathOf(id)} onClick={go}>
      {children}
    </a>
  );
}

/** What was asked of a report that is done. */
function useChildren({ id, status }: Report): Child[] {
  const [found, setFound] = useState<{ id: string; children: Child[] }>({ id: "", children: [] });
  useEffect(() => {
    if (!id || status === "running") return;
    getChildren(id).then(
      (children) => setFound({ id, children }),
      (error: Error) => (problem.value = error.message),
    );
  }, [id, status]);
  return found.id === id ? found.children : [];
}

export function WhatIf({ report }: { report: Report }) {
  const asked = useChildren(report);
  return (
    <Scroller label="What was asked" class="what-if">
      <Form report={report} />
      {report.based_on !== null && (
        <p class="note">
          This asks “what if” of <LinkTo id={report.based_on}>the first exploration</LinkTo>, and stands beside it here.
        </p>
      )}
      <Outcomes outcomes={report.what_if} />
      {beside.value && <Comparison beside={beside.value} />}
      {asked.length > 0 && (
        <p class="note">
          {"Asked of this one: "}
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
