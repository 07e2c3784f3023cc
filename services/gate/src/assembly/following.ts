// Following of files and signals while the gateway runs.
import { AccessLogRotation } from "../access-log/access-log-rotation.ts";
import { watchNetworkFiles } from "../resolve/network-lists.ts";
import type { Base } from "./base.ts";
import type { Traffic } from "./traffic.ts";

const ACCESS_LOG_CHECK_MS = 1000;

/** Rotates logs, renews the certificate and tokens, and reloads at changes of address lists and at SIGHUP. */
export function followFiles(
  { certificate, secrets, discovery, tokens, networks, lifecycle, log }: Base,
  { controller, pools }: Traffic,
): void {
  const rotation = new AccessLogRotation({
    listSpecs: () => [controller.state.globals.accessLog, controller.state.globals.recording],
    intervalMs: ACCESS_LOG_CHECK_MS,
    onRotated: () => void pools.reopenLogs(),
    onError: (error) => log.error("cannot rotate a log", { error: error.message }),
  });
  lifecycle.onDrain("log rotation", () => rotation.close());
  const networkFiles = watchNetworkFiles(networks, () =>
    controller.reload({ caller: "address list file" }),
  );
  lifecycle.onDrain("address list files", () => networkFiles.stop());
  certificate.start(() => controller.renew());
  secrets?.start(() => controller.renew());
  discovery?.start(
    () => controller.listServices(),
    () => controller.renew(),
  );
  tokens.onReplaced(() => controller.renew());
  lifecycle.onDrain("certificate", () => certificate.stop());
  lifecycle.onReload("configuration", async () => {
    await pools.reopenLogs();
    // The controller has logged the failure, and the previous configuration stays active.
    await controller.reload({ caller: "SIGHUP" }).catch(() => undefined);
  });
}
