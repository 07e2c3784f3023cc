// DNS-01 challenges: TXT records by dynamic updates, or by a program of the operator.
import { createHash } from "node:crypto";
import { lookup } from "node:dns/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";
import type { NameServer } from "../config/discovery-address.ts";
import type { TsigKey } from "../config/tsig-key.ts";
import { RecordType } from "../dns/message.ts";
import { lookUp } from "../dns/query.ts";
import { sendUpdate, type TextUpdate } from "../dns/update.ts";
import { runProgram } from "../source/run-program.ts";
import { AcmeError } from "./acme-error.ts";
import type { Proof } from "./order.ts";

/** The way to set records. */
export type DnsSettings =
  | { type: "rfc2136"; server: NameServer; zone: string; key: TsigKey | undefined }
  | { type: "hook"; command: readonly string[] };

/** Options of {@link DnsChallenges}. */
export interface DnsChallengesOptions {
  settings: DnsSettings;
  log: Logger;
  readNowMs: () => number;
}

const LABEL = "_acme-challenge";
const TTL_SECONDS = 60;
const SPREAD_MS = 120_000;
const LOOK_MS = 1_000;
const HOOK_MS = 60_000;
const REASON_CHARACTERS_MAX = 200;

/** Sets and removes the records of proofs. */
export class DnsChallenges {
  readonly #options: DnsChallengesOptions;

  constructor(options: DnsChallengesOptions) {
    this.#options = options;
  }

  /** Sets the record of a proof; resolves with its removal once all servers of the zone have it. Throws {@link AcmeError}. */
  async add(
    { name, keyAuthorization }: Pick<Proof, "name" | "keyAuthorization">,
    signal: AbortSignal,
  ): Promise<() => Promise<void>> {
    const { settings } = this.#options;
    const record = {
      name: `${LABEL}.${name}`,
      text: createHash("sha256").update(keyAuthorization).digest("base64url"),
    };
    const remove = async (): Promise<void> => {
      try {
        // The order may have been given up: its record goes all the same.
        if (settings.type === "hook") await this.#runHook(settings.command, "cleanup", record);
        else await this.#update(settings, { kind: "remove", ...record });
      } catch (error) {
        const reason = describe(error);
        this.#options.log.warn("cannot remove the record of a challenge", { ...record, reason });
      }
    };
    try {
      if (settings.type === "hook") {
        await this.#runHook(settings.command, "present", record, signal);
      } else {
        await this.#update(settings, { kind: "add", ...record });
        await this.#waitForServers(settings, record, signal);
      }
    } catch (error) {
      await remove();
      throw error instanceof AcmeError ? error : new AcmeError("", `dns-01: ${describe(error)}`);
    }
    return remove;
  }

  #update(
    { server, zone, key }: Extract<DnsSettings, { type: "rfc2136" }>,
    update: Pick<TextUpdate, "kind" | "name" | "text">,
  ): Promise<void> {
    if (!update.name.endsWith(`.${zone}`)) {
      throw new AcmeError("", `dns-01: ${update.name} is not a name of the zone ${zone}`);
    }
    const all = { ...update, zone, ttlSeconds: TTL_SECONDS };
    return sendUpdate(server, key, all, this.#options.readNowMs());
  }

  // The authority may ask any of them.
  async #waitForServers(
    { server, zone }: Extract<DnsSettings, { type: "rfc2136" }>,
    { name, text }: { name: string; text: string },
    signal: AbortSignal,
  ): Promise<void> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(SPREAD_MS)]);
    let waiting = await listServers(server, zone);
    for (;;) {
      const states = await Promise.all(waiting.map((one) => hasText(one, name, text)));
      waiting = waiting.filter((_, at) => states[at] !== true);
      if (waiting.length === 0) return;
      if (deadline.aborted) {
        const places = waiting.map(({ host, port }) => `${host}:${port}`).join(", ");
        throw new AcmeError("", `dns-01: the record of ${name} is not at ${places}`);
      }
      await delay(LOOK_MS, undefined, { signal: deadline }).catch(() => undefined);
    }
  }

  async #runHook(
    [program = "", ...args]: readonly string[],
    action: "present" | "cleanup",
    { name, text }: { name: string; text: string },
    signal?: AbortSignal,
  ): Promise<void> {
    const deadline = AbortSignal.timeout(HOOK_MS);
    const stop = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
    const { code, stderr } = await runProgram(program, [...args, action, name, text], {
      signal: stop,
    });
    if (deadline.aborted) throw new Error(`the hook did not end within ${HOOK_MS / 1_000} s`);
    if (stop.aborted) throw new Error("the order has ended");
    if (code === 0) return;
    const said = stderr.trim().slice(0, REASON_CHARACTERS_MAX);
    throw new Error(`the hook ended with code ${code}${said === "" ? "" : `: ${said}`}`);
  }
}

async function listServers(primary: NameServer, zone: string): Promise<NameServer[]> {
  const answer = await lookUp([primary], zone, RecordType.NS, { recursion: false });
  const found = new Map([[primary.host, primary]]);
  for (const { data } of answer.records) {
    if (data.kind !== "name") continue;
    const given = answer.additionals.flatMap((record) =>
      record.name === data.name && record.data.kind === "address" ? [record.data.address] : [],
    );
    const addresses = given.length > 0 ? given : await resolveName(data.name);
    // The primary may listen at another port.
    for (const host of addresses) if (!found.has(host)) found.set(host, { host, port: 53 });
  }
  return [...found.values()];
}

async function resolveName(name: string): Promise<string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    // A server without an address is none that the authority could ask.
    return [];
  }
}

async function hasText(server: NameServer, name: string, text: string): Promise<boolean> {
  try {
    const { records } = await lookUp([server], name, RecordType.TXT, { recursion: false });
    return records.some(({ data }) => data.kind === "text" && data.text === text);
  } catch {
    // It is asked again until the time is over.
    return false;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
