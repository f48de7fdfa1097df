import { kernelPicked, type PhoneTab, phoneTab } from "../state";

/** On a narrow screen: which pane it shows. */
export function PhoneTabs() {
  const kernel = kernelPicked.value;
  const tabs: [PhoneTab, string][] = [
    ["code", "Code"],
    ["map", "Map"],
    ["kernel", kernel === null ? "Kernel" : `Kernel K${kernel + 1}`],
    ["more", "More"],
  ];
  return (
    <nav class="phone-tabs" aria-label="Panes">
      {tabs.map(([id, label]) => (
        <button type="button" key={id} aria-current={phoneTab.value === id ? "page" : undefined} onClick={() => (phoneTab.value = id)}>
          {label}
        </button>
      ))}
    </nav>
  );
}
