import { useEffect, useState } from "preact/hooks";
import { type Answer, getWhy } from "../../api";
import { newestWith, type Pair, type Shown } from "../../state";
import { isKnown, ofGraph } from "./answers";

export interface Asked {
  /** The exploration that the answers are of; null while none has decisions. */
  shown: Shown | null;
  answers: Answer[];
  problem: string;
  isAsking: boolean;
}

interface Found {
  key: string;
  subject: string;
  answers: Answer[];
  problem: string;
}

const NOTHING: Found = { key: "", subject: "", answers: [], problem: "" };

/** The service's answers about two nodes of what is on screen; those of the version before stay until new ones come. */
export function useAnswers({ graph, a, b }: Pair): Asked {
  const shown = newestWith((one) => one.decisions.length + one.rounds.length > 0);
  const [found, setFound] = useState<Found>(NOTHING);
  // A version without these nodes has no answer, and the service would call the question a mistake.
  const unknown = shown && [a, b].find((name) => !shown.report.graphs.some((one) => isKnown(name, one)));
  const id = unknown == null ? (shown?.report.id ?? "") : "";
  const subject = `${graph} ${a} ${b}`;
  // A report that runs tells more when it is done.
  const key = `${id} ${shown?.report.status === "running"} ${subject}`;
  useEffect(() => {
    if (!id) return undefined;
    let isWanted = true;
    getWhy(id, a, b).then(
      (answers) => isWanted && setFound({ key, subject, answers: ofGraph(answers, graph), problem: "" }),
      (error: Error) => isWanted && setFound({ key, subject, answers: [], problem: error.message }),
    );
    return () => {
      isWanted = false;
    };
  }, [key]);
  if (shown && unknown != null) {
    const isRunning = shown.report.status === "running";
    return { shown, answers: [], problem: isRunning ? "" : `This exploration has no node “${unknown}”.`, isAsking: isRunning };
  }
  const isOfSubject = found.subject === subject;
  return { shown, answers: isOfSubject ? found.answers : [], problem: isOfSubject ? found.problem : "", isAsking: found.key !== key };
}
