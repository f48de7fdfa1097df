import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import * as format from "../format";
import { refOfLine } from "../links";
import type { Artefact, Compilation } from "../report";
import { GraphLinks } from "./GraphLinks";

/** A fold whose content is made when it is first opened: most readers never do. */
function Fold({ summary, children }: { summary: ComponentChildren; children(): ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="fold" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  );
}

function Text({ label, text }: { label: string; text: string }) {
  return (
    <pre class="artefact" tabIndex={0} role="region" aria-label={label}>
      {text || "(left out: the report holds no more text)"}
    </pre>
  );
}

function ArtefactFold({ artefact }: { artefact: Artefact }) {
  const cut = artefact.text.length < artefact.chars;
  return (
    <Fold
      summary={
        <>
          <code>{artefact.name}</code> {artefact.title}
          {cut && <span class="quiet">{` (the first ${artefact.text.length.toLocaleString("en-US")} of ${artefact.chars.toLocaleString("en-US")} characters)`}</span>}
        </>
      }
    >
      {() => <Text label={artefact.title} text={artefact.text} />}
    </Fold>
  );
}

function Bytecode({ compilation }: { compilation: Compilation }) {
  return (
    <Fold
      summary={
        <>
          <code>bytecode</code> before and after Dynamo
        </>
      }
    >
      {() => (
        <div class="bytecode">
          <Text label="Bytecode before" text={compilation.bytecode_before} />
          <Text label="Bytecode after" text={compilation.bytecode_after} />
        </div>
      )}
    </Fold>
  );
}

/** Everything that torch itself says of each compilation, folded away. */
export function Compilations({ compilations }: { compilations: Compilation[] }) {
  if (compilations.length === 0) return null;
  return (
    <div class="compilations">
      <Fold summary={`More: bytecode and torch's logs of ${format.count(compilations.length, "compilation")}`}>
        {() =>
          compilations.map((one) => (
            <section key={one.id} aria-label={`Compilation ${one.id}`}>
              <p class="note" data-ref={refOfLine(one.line)} tabIndex={0}>
                <strong>{`[${one.id}] ${one.function ?? ""}`}</strong>
                {one.line !== null && <span class="chip">{`line ${one.line}`}</span>}
                {one.graphs.length > 0 ? <GraphLinks before="made" names={one.graphs} /> : <span class="quiet">made no graph</span>}
              </p>
              {one.bytecode_before && <Bytecode compilation={one} />}
              {one.artefacts.map((artefact, index) => (
                <ArtefactFold key={index} artefact={artefact} />
              ))}
            </section>
          ))
        }
      </Fold>
    </div>
  );
}
