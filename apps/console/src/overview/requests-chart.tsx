// Requests over the last three hours, with the changes as marks.
import type { ServiceId } from "@platform/console/contract";
import { LazyChart } from "../chart/lazy-chart.tsx";
import { changes, readSeries } from "../live/live.ts";
import { useLoad } from "../view/load.ts";
import { LoadProblem } from "../view/problem.tsx";
import { t } from "../words/words.ts";

const SPAN_MS = 3 * 3_600_000;
const REFRESH_MS = 10_000;
const MARKS_MAX = 6;
const HEIGHT_PX = 300;
/** Characters of a mark. */
const LABEL_MAX = 28;

export function RequestsChart({ service, label }: { service: ServiceId; label: string }) {
  const loaded = useLoad(
    service,
    () => readSeries(service, ["requests", "errors"], Date.now() - SPAN_MS, 10),
    REFRESH_MS,
  );
  const data = loaded.data.value;
  const times = data?.series[0]?.values.map(
    (_value, index) => data.from / 1000 + index * data.step,
  );
  return (
    <section class="sec">
      <div class="h2">
        <h2>{t("Requests")}</h2>
        <small>
          {label}, {t("per second, last 3 hours")}
        </small>
        <span class="legend">
          <span class={`hue hue-${service}`}>
            <i />
            {t("all")}
          </span>
          <span class="hue hue-bad">
            <i />
            5xx
          </span>
        </span>
      </div>
      <LoadProblem of={loaded} />
      {data === undefined && <div style={{ height: `${HEIGHT_PX}px` }} />}
      {data !== undefined && times !== undefined && (
        <LazyChart
          label={t("Requests per second, last 3 hours")}
          times={times}
          heightPx={HEIGHT_PX}
          marks={changes.value.slice(0, MARKS_MAX).map((change) => ({
            at: Date.parse(change.at) / 1000,
            label: shorten(change.title),
          }))}
          lines={[
            { label: t("all"), colour: "--gateway", values: data.series[0]?.values ?? [] },
            { label: "5xx", colour: "--bad", values: data.series[1]?.values ?? [] },
          ]}
        />
      )}
    </section>
  );
}

function shorten(title: string): string {
  return title.length <= LABEL_MAX ? title : `${title.slice(0, LABEL_MAX - 1).trimEnd()}…`;
}
