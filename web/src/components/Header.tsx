import { isEmbedded } from "../embed";
import { explore, idInPath, pathOf } from "../explore";
import { requestFrom, setOption } from "../options";
import { examples, flash, helpIsOpen, pair, report, say, source, version } from "../state";
import { theme, toggleTheme } from "../theme";
import { viewQuery } from "../view";
import { copyText } from "./copy";
import { Earlier } from "./Earlier";
import { LessonsMenu } from "./lessons/LessonsMenu";

function loadExample(name: string): void {
  const example = examples.value.find((candidate) => candidate.name === name);
  if (!example) return;
  source.value = example.source;
  // Sizes and nodes of the snippet before are none of this one.
  setOption("sweep", "");
  pair.value = null;
  void explore(requestFrom(example.source));
}

function share(): void {
  const id = report.value?.id;
  // With all that one looks at now.
  const link = id ? new URL(pathOf(id) + viewQuery(), location.href).href : location.href;
  void copyText(link).then((copied) => {
    say(copied ? "Link copied" : link);
  });
}

/** What produced the figures on screen; before there are any, what the server runs. */
function environmentText(): string {
  const environment = report.value?.environment;
  const known = environment?.torch ? environment : version.value?.worker;
  if (!known) return "";
  const { device, device_name: name, torch, triton } = known;
  return [name || device, `torch ${torch}`, triton && `triton ${triton}`].filter(Boolean).join(" · ");
}

function Brand() {
  return (
    <>
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
        <path d="M8 5c0 9 8 7 8 18" class="brand-a" />
        <path d="M24 5c0 9-8 7-8 18" class="brand-b" />
        <circle cx="16" cy="25" r="4" class="brand-c" />
      </svg>
      <h1>Fusionscope</h1>
    </>
  );
}

/** In a frame: what this is, and the way to the whole page. */
function EmbeddedHeader() {
  const id = idInPath(location.pathname);
  const page = id ? pathOf(id) + viewQuery() : "/";
  return (
    <header class="header">
      <div class="brand">
        <Brand />
      </div>
      <p class="environment">{environmentText()}</p>
      <a href={page} target="_blank" rel="noopener">
        Open in Fusionscope
      </a>
    </header>
  );
}

export function Header() {
  if (isEmbedded()) return <EmbeddedHeader />;
  const current = examples.value.find((example) => example.source === source.value);
  const environment = environmentText();
  return (
    <header class="header">
      <a class="brand" href="/" aria-label="Fusionscope, start page">
        <Brand />
      </a>
      <label class="field">
        <span>Example</span>
        <select aria-label="Example" value={current?.name ?? ""} onChange={(event) => loadExample(event.currentTarget.value)}>
          {!current && <option value="">none of these</option>}
          {examples.value.map((example) => (
            <option key={example.name} value={example.name}>
              {example.title}
            </option>
          ))}
        </select>
      </label>
      <LessonsMenu />
      <Earlier />
      <p class="environment" title={environment}>
        {environment}
      </p>
      {flash.value && <span class="flash">{flash.value}</span>}
      <button type="button" onClick={share} disabled={!report.value?.id}>
        Share
      </button>
      <button type="button" onClick={toggleTheme} aria-label={`Use the ${theme.value === "dark" ? "light" : "dark"} theme`}>
        {theme.value === "dark" ? "☀" : "☾"}
      </button>
      <button type="button" onClick={() => (helpIsOpen.value = true)} aria-label="Help and keys">
        ?
      </button>
    </header>
  );
}
