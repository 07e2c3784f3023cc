// The trace: five minutes of the page's scope, one stroke a second, errors below the line.
import { useEffect, useRef } from "preact/hooks";
import { effect } from "@preact/signals";
import { colourOf, watchTheme } from "../chart/colours.ts";
import { feeds, HISTORY_S, historyOf, isRefused } from "../live/live.ts";
import { loss, type Loss } from "../stage/loss.ts";
import { trace, type Fact, type TraceScope } from "../stage/stage.ts";
import { formatTime, splitFigure } from "../format/format.ts";
import { path } from "../router/router.ts";
import { t } from "../words/words.ts";
import { findArea, listAreas } from "./navigation.ts";

const ERROR_PX = 5;

/** The strip below the head. */
export function TraceStrip() {
  const scope = trace.value;
  if (scope === undefined) {
    // Its place, until the module of the page is loaded.
    const area = findArea(path.value);
    const hasTrace = path.value === "/" || (area !== undefined && area.page === undefined);
    return hasTrace ? <div class="trace" /> : null;
  }
  const lost = loss.value;
  return (
    <section class={lost === undefined ? "trace" : "trace lost"} aria-label={scope.label}>
      <div class="lab">
        {scope.label}
        <br />
        {isRefused(feeds.value.get(scope.service)) ? t("No access") : t("last 5 min")}
      </div>
      <div class="trace-view">
        <Strokes scope={scope} />
        {/* Here, the page below does not move. */}
        <p role="status">{lost !== undefined && describeLoss(lost)}</p>
      </div>
      <dl>
        {(scope.facts ?? defaultFacts(scope)).map(({ value, unit, label, isBad = false }) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd class={isBad ? "bad" : ""}>
              {value}
              {unit !== undefined && unit !== "" && <small>{unit}</small>}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function describeLoss({ of, sinceMs }: Loss): string {
  const time = formatTime(sinceMs);
  if (of === "console") {
    return t(
      "No answer from the console since {time}. This page shows earlier data until it is back.",
      {
        time,
      },
    );
  }
  const name = listAreas().find(({ id, page }) => page === undefined && id === of)?.label ?? of;
  return t("No answer from {name} since {time}. This page shows earlier data until it is back.", {
    name,
    time,
  });
}

function defaultFacts({ service }: TraceScope): Fact[] {
  const feed = feeds.value.get(service);
  if (feed === undefined) return [];
  const wanted: [name: string, label: string][] = [
    ["requests", t("requests")],
    ["latency_p99", "p99"],
    ["errors", t("errors")],
  ];
  return wanted.flatMap(([name, label]) => {
    const info = feed.figures.find((figure) => figure.name === name);
    if (info === undefined) return [];
    const value = feed.values[name] ?? null;
    const [number, unit] = splitFigure(value, info.unit);
    return [{ value: number, unit, label, isBad: name === "errors" && (value ?? 0) > 0 }];
  });
}

function Strokes({ scope }: { scope: TraceScope }) {
  const ref = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const canvas = ref.current!;
    const draw = (): void => drawStrokes(canvas, scope);
    const resize = new ResizeObserver(draw);
    resize.observe(canvas);
    const stopTheme = watchTheme(draw);
    const stop = effect(() => {
      if (feeds.value.size >= 0) draw();
    });
    return () => {
      stop();
      stopTheme();
      resize.disconnect();
    };
  }, [scope]);
  return <canvas ref={ref} class={`strokes hue hue-${scope.service}`} aria-hidden="true" />;
}

function drawStrokes(canvas: HTMLCanvasElement, scope: TraceScope): void {
  const ratio = devicePixelRatio;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const values = scope.values ?? historyOf(scope.service, scope.figure ?? "");
  const errors = scope.failures ?? historyOf(scope.service, scope.errors ?? "");
  const pitch = width / HISTORY_S;
  const base = height - ERROR_PX - 1;
  const max = Math.max(1, ...values.map((value) => value ?? 0));
  context.fillStyle = colourOf(canvas, "--line-strong");
  context.globalAlpha = 0.45;
  for (let x = 0; x < width; x += 4) context.fillRect(x, base, 1, 1);
  context.fillStyle = colourOf(canvas, "--c");
  const offset = HISTORY_S - values.length;
  for (const [index, value] of values.entries()) {
    if (value === null || value === 0) continue;
    const tall = Math.max(1, (value / max) * (base - 2));
    context.globalAlpha = 0.34 + 0.66 * ((offset + index) / HISTORY_S);
    context.fillRect((offset + index) * pitch, base - tall, Math.max(1, pitch * 0.68), tall);
  }
  context.fillStyle = colourOf(canvas, "--bad");
  context.globalAlpha = 1;
  const errorOffset = HISTORY_S - errors.length;
  for (const [index, value] of errors.entries()) {
    if (value === null || value === 0) continue;
    context.fillRect((errorOffset + index) * pitch, base + 1, Math.max(2, pitch * 0.68), ERROR_PX);
  }
}
