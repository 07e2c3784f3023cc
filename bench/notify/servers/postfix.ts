// Postfix as the peer. Its daemons serve any number of requests: none exits, so that its CPU time is counted in full.
import { setTimeout as sleep } from "node:timers/promises";
import {
  findPostfixSkip,
  startPostfix,
  type Postfix,
} from "../../../services/notify/test/postfix.ts";
import { findProgram, readProgramVersion } from "../../../tests/stage/program.ts";
import type { Row } from "../../harness/report.ts";

const DISCARD = ["relayhost =", "default_transport = discard:"];

/**
 * Runs `work` with Postfix on some cores, and its row; without Postfix the row says why. Mail is forwarded to `relayPort`,
 * or discarded.
 */
export async function withPostfix<T>(
  cores: string,
  relayPort: number | undefined,
  work: (postfix: Postfix | undefined, row: Row) => Promise<T>,
): Promise<T> {
  const row: Row = { name: "Postfix", isOurs: false, version: "", rounds: [] };
  const skip =
    findProgram("postfix") === undefined ? "Postfix is not installed" : findPostfixSkip();
  if (skip !== undefined) return work(undefined, { ...row, note: skip });
  const postfix = await startPostfix({
    relayPort: relayPort ?? 25,
    prefix: ["taskset", "-c", cores],
    settings: [
      "max_use = 1000000000",
      "max_idle = 3600s",
      "smtpd_client_connection_count_limit = 0",
      ...(relayPort === undefined ? DISCARD : []),
    ],
  });
  try {
    const version = readProgramVersion("postconf", ["-d", "mail_version"]) ?? "unknown";
    return await work(postfix, { ...row, version });
  } finally {
    await postfix.stop();
  }
}

/** Resolves when the queue is empty. */
export async function awaitEmptyQueue(postfix: Postfix): Promise<void> {
  while (postfix.countQueued() > 0) await sleep(20);
}
