/** The editor's fixed parts: language, keys, looks. Colours are the page's custom properties, so themes just work. */
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import type { Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--code-name)", fontWeight: "600" },
  { tag: tags.meta, color: "var(--code-meta)" },
]);

const looks = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", backgroundColor: "var(--surface)", color: "var(--text)" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { caretColor: "var(--text)", paddingBlock: "6px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--quiet)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "30px", paddingRight: "6px" },
  ".cm-activeLine": { backgroundColor: "var(--active-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-placeholder": { color: "var(--quiet)" },
  ".cm-selectionMatch": { backgroundColor: "var(--selection)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "1px solid var(--border-strong)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)", borderColor: "var(--border)" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button": { font: "inherit" },
  ".cm-kernel-gutter": { width: "10px" },
  ".cm-kernel-gutter .cm-gutterElement": { padding: "0" },
  ".kernel-bars": { display: "flex", height: "100%", gap: "1px", paddingBlock: "2px" },
  ".kernel-bars i": { flex: "0 0 3px", borderRadius: "2px" },
  ...Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((place) => [`.kernel-bars i.kernel-${place}`, { backgroundColor: `var(--kernel-${place})` }])),
  ".lit-line, .lit-line.cm-activeLine": { backgroundColor: "var(--lit)", boxShadow: "inset 3px 0 0 var(--lit-edge)" },
  ".error-line": { backgroundColor: "var(--bad-tint)" },
  ".break-line": { backgroundColor: "var(--warn-tint)" },
  // As wide as what is visible of the editor, however long its lines are.
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", fontVariantLigatures: "none", containerType: "inline-size" },
  ".line-message-frame": { padding: "1px 8px 4px 6px", width: "calc(100cqw - 64px)", position: "sticky", left: "46px" },
  ".line-message": { fontFamily: "var(--sans)", fontSize: "12.5px", lineHeight: "1.4", whiteSpace: "pre-wrap", overflowWrap: "anywhere", padding: "2px 8px", borderLeft: "3px solid" },
  ".line-message code": { fontFamily: "var(--mono)", fontSize: "12px" },
  ".line-message-error": { color: "var(--bad)", borderColor: "var(--bad)", backgroundColor: "var(--bad-tint)" },
  ".line-message-break": { color: "var(--warn)", borderColor: "var(--warn)", backgroundColor: "var(--warn-tint)" },
  ".line-message-note": { color: "var(--quiet)", borderColor: "var(--border-strong)", backgroundColor: "var(--raised)" },
});

/** Tab indents; after Esc, or with Ctrl+M, it leaves the editor, so that the keyboard is never caught in it. */
export const editorSetup: Extension = [
  lineNumbers(),
  history(),
  drawSelection(),
  placeholder("Paste Python code that calls PyTorch."),
  indentOnInput(),
  indentUnit.of("    "),
  bracketMatching(),
  highlightActiveLine(),
  highlightSelectionMatches(),
  search({ top: true }),
  python(),
  syntaxHighlighting(colours),
  looks,
  keymap.of([
    // The page explores on this key, wherever the focus is.
    { key: "Mod-Enter", run: () => true },
    ...searchKeymap,
    ...historyKeymap,
    ...defaultKeymap,
    { key: "Tab", run: indentMore, shift: indentLess },
  ]),
  EditorView.contentAttributes.of({ "aria-label": "PyTorch snippet", "aria-description": "Tab indents. Escape, then Tab, leaves the editor.", spellcheck: "false", tabindex: "0" }),
];
