// The figures that the overview shows of each service.
import type { ServiceId } from "@platform/console/contract";
import { t } from "../words/words.ts";

/** A figure of a service in the ledger. */
export interface LedgerFigure {
  figure: string;
  label: () => string;
  /** Any value above 0 needs attention. */
  isBad?: boolean;
}

const REQUESTS: LedgerFigure = { figure: "requests", label: () => t("req/s") };
const LATENCY: LedgerFigure = { figure: "latency_p99", label: () => "p99" };
const ERRORS: LedgerFigure = { figure: "errors", label: () => t("errors/s"), isBad: true };

/** Three figures of each service. */
export const LEDGER: Readonly<Record<ServiceId, readonly LedgerFigure[]>> = {
  gate: [REQUESTS, LATENCY, ERRORS],
  auth: [REQUESTS, { figure: "sessions", label: () => t("sessions") }, ERRORS],
  vault: [REQUESTS, { figure: "disk_free", label: () => t("free") }, ERRORS],
  pulse: [
    { figure: "published", label: () => t("msg/s in") },
    { figure: "topics", label: () => t("topics") },
    { figure: "dead_letters", label: () => t("dead/s"), isBad: true },
  ],
  notify: [REQUESTS, { figure: "queued", label: () => t("queued") }, ERRORS],
  tunnel: [REQUESTS, { figure: "tunnels", label: () => t("tunnels") }, ERRORS],
  runtime: [
    { figure: "services_running", label: () => t("services") },
    { figure: "restarts", label: () => t("restarts") },
    ERRORS,
  ],
};
