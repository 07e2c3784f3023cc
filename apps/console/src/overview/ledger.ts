// The figures that the overview shows of each service.
import type { ServiceId, ServiceInfo } from "@platform/console/contract";
import { t } from "../words/words.ts";

/** A service as the overview names it. */
export interface ServiceLabel {
  id: ServiceId;
  label: string;
  /** First page below `/ui`. */
  to: string;
  isUp: boolean;
}

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

/** Labels and first pages of services, in the order of the rail. */
export function describeServices(list: readonly ServiceInfo[]): ServiceLabel[] {
  const known: [ServiceId, string, string][] = [
    ["gate", t("Gateway"), "/gateway/routes"],
    ["auth", t("Identity"), "/identity/users"],
    ["vault", t("Storage"), "/storage/buckets"],
    ["pulse", t("Messaging"), "/messaging/topics"],
    ["notify", t("Mail"), "/mail/inbox"],
    ["tunnel", t("Tunnels"), "/tunnels"],
    ["runtime", t("Runtime"), "/runtime/services"],
  ];
  return known.flatMap(([id, label, to]) => {
    const service = list.find((one) => one.id === id);
    return service === undefined ? [] : [{ id, label, to, isUp: service.is_up }];
  });
}
