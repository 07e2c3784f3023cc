// Figures of the platform's services, and conditions that need an operator.
import type { AdminFeedsOptions } from "@platform/kernel/feeds";
import type { RunningServices } from "../control/running-services.ts";
import type { RunningState } from "../data-folder/running-file.ts";

type Conditions = ReturnType<NonNullable<AdminFeedsOptions["conditions"]>[number]>;

/** Describes the figures. */
export function describeFigures(states: RunningServices): AdminFeedsOptions["figures"] {
  return [
    {
      name: "services_running",
      unit: "",
      title: "Running services",
      kind: "gauge",
      read: () => states.state.services.filter(({ state }) => state === "running").length,
    },
    {
      name: "restarts",
      unit: "",
      title: "Unexpected exits of services",
      kind: "gauge",
      read: () => states.state.services.reduce((sum, { restarts }) => sum + restarts, 0),
    },
  ];
}

/** After a restart, the failure stays a condition for this time: in a loop it does not come and go. */
const RECOVERED_MS = 60_000;

/** Lists services that failed or were stopped. */
export function describeConditions({ services }: RunningState, nowMs: number): Conditions {
  return services.flatMap((service): Conditions => {
    const { name, label, state, restarts, last_failure: failure = "" } = service;
    const href = `/ui/runtime/services?service=${name}`;
    if (state === "restarting") {
      const title = restarts > 3 ? `${label} keeps exiting` : `${label} exited`;
      const detail = `${failure} It is started again, after 30 s at most; see its log.`;
      return [{ id: `failed:${name}`, level: "critical", title, detail, href }];
    }
    const ranMs = nowMs - Date.parse(service.started_at ?? "");
    if (state === "running" && failure !== "" && ranMs < RECOVERED_MS) {
      const title = `${label} was started again`;
      return [{ id: `failed:${name}`, level: "warning", title, detail: failure, href }];
    }
    if (state !== "stopped") return [];
    const detail = "It stays stopped until it is started, or the platform is.";
    return [
      { id: `stopped:${name}`, level: "warning", title: `${label} is stopped`, detail, href },
    ];
  });
}
