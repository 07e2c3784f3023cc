// Entry point of a worker thread: passes messages of the control plane to the data plane.
import * as modules from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import { RevocationSet } from "@platform/kernel/identity";
import { returnMemory } from "@platform/kernel/memory";
import type { FromWorker, ToWorker, WorkerInit } from "../shared-state/index.ts";
import { AccessState } from "../filter/identity/access-state.ts";
import { ControlLink } from "../filter/control-link.ts";
import { createVerifierSource } from "../filter/identity/verifier-source.ts";
import { DataPlane } from "./data-plane.ts";

const port = parentPort;
if (port === null) throw new Error("this module must run in a worker thread");
const send = (message: FromWorker): void => port.postMessage(message);
const init = workerData as WorkerInit;
const revocations =
  init.revocations === undefined ? undefined : new RevocationSet(init.revocations.issuer);
revocations?.add(init.revocations?.entries ?? []);
if (revocations !== undefined) revocations.policyVersion = init.revocations?.policyVersion;
const access = new AccessState(revocations);
const control = new ControlLink(send);
const onKeysError = (url: string, error: unknown): void => {
  const text = error instanceof Error ? error.message : String(error);
  send({
    type: "log",
    level: "warn",
    msg: "cannot fetch the keys of an issuer",
    fields: { url, error: text },
  });
};
const plane = new DataPlane({
  init,
  verifiers: createVerifierSource(onKeysError, (claims) => access.isRevoked(claims)),
  access,
  control,
  send,
});

port.on("message", (message: ToWorker) => {
  switch (message.type) {
    case "stage":
      plane.stage(message);
      return;
    case "apply":
      plane.apply(message);
      return;
    case "readiness":
      plane.setReadiness(message.up, message.checks);
      return;
    case "ticket-keys":
      plane.setTicketKeys(message.ticketKeys);
      return;
    case "revocations":
      plane.revoke(message.entries, message.policyVersion);
      return;
    case "session-refreshed":
    case "similar-found":
      control.receive(message);
      return;
    case "reopen-access-log":
      void plane.reopenAccessLog();
      return;
    case "find-spans":
      plane.findSpans(message);
      return;
    case "drain":
      void plane.drain(message.deadlineMs);
      return;
    default:
      message satisfies never;
  }
});
// Threads end with the process, which may be killed: the next start finds their modules compiled. Bun lacks it.
modules.flushCompileCache?.();
returnMemory();
