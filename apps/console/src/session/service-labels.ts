// Names and first pages of services.
import type { ServiceId, ServiceInfo } from "@platform/console/contract";
import { t } from "../words/words.ts";

/** A service as pages name it. */
export interface ServiceLabel {
  id: ServiceId;
  label: string;
  /** First page below `/ui`. */
  to: string;
  isUp: boolean;
}

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
