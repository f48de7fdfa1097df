import { useMemo } from "preact/hooks";
import type { Picture } from "../../graph/stack";
import * as camera from "./camera";

const WIDTH = 150;
const HEIGHT = 110;

/** The whole picture, small, and which part of it is seen; a click or a drag moves there. Not shown where all is seen. */
export function Minimap({ picture }: { picture: Picture }) {
  const k = Math.min(WIDTH / Math.max(1, picture.width), HEIGHT / Math.max(1, picture.height));
  const left = WIDTH / 2;
  const top = (HEIGHT - picture.height * k) / 2;
  const drawing = useMemo(
    () =>
      picture.frames.map((frame) => (
        <g key={frame.map.graph}>
          <rect class="frame-box" x={left + frame.x * k} y={top + frame.y * k} width={frame.width * k} height={frame.height * k} />
          {frame.map.nodes.map((node) => {
            const at = frame.layout.nodes[node.id];
            const [place] = node.kernels;
            return (
              at && (
                <rect
                  key={node.id}
                  class={place === undefined ? "no-kernel" : `kernel-${place % 8}`}
                  x={left + (frame.origin.x + at.x - node.width / 2) * k}
                  y={top + (frame.origin.y + at.y - node.height / 2) * k}
                  width={Math.max(1.5, node.width * k)}
                  height={Math.max(1, node.height * k)}
                />
              )
            );
          })}
        </g>
      )),
    [picture],
  );
  const view = camera.view.value;
  const { width, height } = camera.size.value;
  const seen = { x: left - (view.x / view.k) * k, y: top - (view.y / view.k) * k, width: (width / view.k) * k, height: (height / view.k) * k };
  const showsAll = seen.x <= left - (picture.width / 2) * k && seen.y <= top && seen.x + seen.width >= left + (picture.width / 2) * k && seen.y + seen.height >= top + picture.height * k;
  if (showsAll) return null;
  const move = (event: PointerEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    camera.centreOn({ x: ((event.clientX - box.x) - left) / k, y: ((event.clientY - box.y) - top) / k }, view.k, true);
  };
  return (
    <svg
      class="minimap"
      width={WIDTH}
      height={HEIGHT}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        move(event);
      }}
      onPointerMove={(event) => event.buttons > 0 && move(event)}
    >
      {drawing}
      <rect class="minimap-seen" {...seen} />
    </svg>
  );
}
