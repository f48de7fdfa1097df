import { useEffect } from "preact/hooks";
import { installKeys } from "../keyboard";
import { isAsking } from "../lessons";
import { isNarrow } from "../layout";
import { announcement, pair, phoneTab, reasonShown, sideIsOpen } from "../state";
import { AnswerBar } from "./AnswerBar";
import { AfterTheAnswer, Drawer, viewShown } from "./Drawer";
import { EditorPane } from "./EditorPane";
import { Header } from "./Header";
import { Help } from "./Help";
import { ABOVE_EDITOR, MapPane, Side, WhyCard } from "./mounts";
import { PhoneTabs } from "./PhoneTabs";
import { exploreNow } from "./run";
import { Toolbar } from "./Toolbar";
import { useSplit } from "./useSplit";

const EDITOR = { id: "slot-editor", name: "editor", share: 28 };
const MAP = { id: "slot-map", name: "map", share: null };
const SIDE = { id: "slot-side", name: "kernel", share: 30 };
const COLUMNS = { id: "columns", name: "map", share: null };
const DRAWER = { id: "drawer", name: "drawer", share: 36 };

export function App() {
  const hasSide = sideIsOpen.value || isNarrow.value;
  const hasDrawer = viewShown() !== null;
  useSplit("horizontal", isNarrow.value ? [] : hasSide ? [EDITOR, MAP, SIDE] : [EDITOR, MAP]);
  useSplit("vertical", isNarrow.value || !hasDrawer ? [] : [COLUMNS, DRAWER]);
  useEffect(() => installKeys(exploreNow), []);
  return (
    <div class="page" data-tab={phoneTab.value} data-asking={isAsking.value || undefined}>
      <Header />
      <AnswerBar />
      <main class="main">
        <div class="rows">
          <div class="columns" id="columns">
            <div class="slot" id="slot-editor">
              {ABOVE_EDITOR.map((Panel, place) => (
                <Panel key={place} />
              ))}
              <EditorPane />
            </div>
            <div class="slot" id="slot-map">
              <MapPane />
            </div>
            {hasSide && (
              <div class="slot" id="slot-side">
                {isAsking.value ? <AfterTheAnswer /> : <Side />}
              </div>
            )}
          </div>
          <Drawer />
        </div>
        <Toolbar />
      </main>
      {isNarrow.value && <PhoneTabs />}
      {!isAsking.value && (pair.value ?? reasonShown.value) && <WhyCard />}
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </div>
      <Help />
    </div>
  );
}
