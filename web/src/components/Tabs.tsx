import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

export interface Tab<Id extends string> {
  id: Id;
  label: ComponentChildren;
  badge?: string | number | undefined;
  ref?: string | undefined;
}

interface Props<Id extends string> {
  name: string;
  label: string;
  tabs: Tab<Id>[];
  selected: Id;
  onSelect(id: Id): void;
}

/** A tab list as ARIA describes it: one tab stop, arrows move within. */
export function Tabs<Id extends string>({ name, label, tabs, selected, onSelect }: Props<Id>) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const now = tabs.findIndex((tab) => tab.id === selected);
    const next = tabs[(now + step + tabs.length) % tabs.length];
    if (!next) return;
    event.preventDefault();
    onSelect(next.id);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
      {tabs.map((tab) => (
        <button
          type="button"
          role="tab"
          key={tab.id}
          id={`${name}-tab-${tab.id}`}
          aria-selected={tab.id === selected}
          aria-controls={`${name}-panel`}
          tabIndex={tab.id === selected ? 0 : -1}
          data-ref={tab.ref}
          onClick={() => onSelect(tab.id)}
        >
          {tab.label}
          {tab.badge !== undefined && tab.badge !== 0 && <span class="badge">{tab.badge}</span>}
        </button>
      ))}
    </div>
  );
}

interface PanelProps {
  name: string;
  selected: string;
  stale?: boolean | undefined;
  children: ComponentChildren;
}

export function TabPanel({ name, selected, stale, children }: PanelProps) {
  return (
    <div class="tab-panel" role="tabpanel" id={`${name}-panel`} aria-labelledby={`${name}-tab-${selected}`} data-stale={stale || undefined}>
      {children}
    </div>
  );
}
