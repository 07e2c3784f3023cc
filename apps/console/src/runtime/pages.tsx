// The pages of the runtime, which `platform up` itself provides.
import "./runtime.css";
import { matchPath, path } from "../router/router.ts";
import { feeds } from "../live/live.ts";
import { useTrace } from "../stage/stage.ts";
import { splitFigure } from "../format/format.ts";
import { t } from "../words/words.ts";
import { LogsPage } from "./logs.tsx";
import { SchedulesPage } from "./schedules.tsx";
import { ServicesPage } from "./services.tsx";
import { TracePage } from "./trace-page.tsx";

const FACTS = [
  { figure: "services_running", label: () => t("services") },
  { figure: "restarts", label: () => t("restarts") },
];

/** The page of the current path. */
export default function RuntimePages() {
  const feed = feeds.value.get("runtime");
  const facts = FACTS.flatMap(({ figure, label }) => {
    const info = feed?.figures.find(({ name }) => name === figure);
    if (info === undefined) return [];
    const [value, unit] = splitFigure(feed?.values[figure], info.unit);
    return [{ value, unit, label: label() }];
  });
  useTrace({ label: t("Runtime"), service: "runtime", figure: "requests", facts });
  const trace = matchPath("/runtime/traces/:id", path.value);
  if (trace !== undefined) return <TracePage key={trace["id"]} id={trace["id"] ?? ""} />;
  if (path.value === "/runtime/schedules") return <SchedulesPage />;
  if (path.value === "/runtime/logs") return <LogsPage />;
  return <ServicesPage />;
}
