// The services as the page sees them: each describes itself, and answers for its own credentials.
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { ConsoleSession, LoginRequest, ServiceId, ServiceInfo } from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import type { Credential, Grant, Session } from "../session/session.ts";
import { askTarget } from "./target-request.ts";
import type { Target } from "./target.ts";

const ATTENTION_PATH = "/api/v1/admin/attention";
const FRESH_MS = 5_000;
const CONFIG_MS = 5_000;
const LOGIN_MS = 15_000;
const configSchema = z.object({
  services: z.array(
    z.object({
      version: z.string().max(64),
      features: z.array(z.string().max(64)).max(100),
      credentials: z.enum(["token", "password", "keys"]).nullable(),
    }),
  ),
});

type OwnInfo = Pick<ServiceInfo, "version" | "features" | "credentials">;

/** Options of {@link ServiceDirectory}. */
export interface ServiceDirectoryOptions {
  targets: ReadonlyMap<string, Target>;
  /** Descriptions of services that have no console of their own. */
  known: ReadonlyMap<ServiceId, OwnInfo>;
  clock: Clock;
}

export class ServiceDirectory {
  readonly #options: ServiceDirectoryOptions;
  readonly #infos = new Map<ServiceId, OwnInfo & { isUp: boolean }>();
  #reading: Promise<void> | undefined;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ServiceDirectoryOptions) {
    this.#options = options;
  }

  /** All services; descriptions are at most 5 s old. A service that is down keeps its last one. */
  async list(): Promise<ServiceInfo[]> {
    const { targets, clock } = this.#options;
    if (clock.monotonicMs() - this.#readAtMs >= FRESH_MS) {
      this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
      await this.#reading;
    }
    return [...targets.values()].map(({ id }) => {
      const info = this.#infos.get(id);
      return {
        id,
        base: `/svc/${id}`,
        version: info?.version ?? "",
        features: info?.features ?? [],
        credentials: info?.credentials ?? null,
        is_up: info?.isUp ?? false,
      };
    });
  }

  /** Checks a service's own credentials, and adds them to the session. */
  async login(body: LoginRequest, current: Session | undefined): Promise<Grant> {
    const target = this.#options.targets.get(body.service ?? "");
    if (target === undefined) {
      throw createConsoleError("not_signed_in_to_service", {
        detail: "Name a service of the console.",
      });
    }
    await this.requireCredentials(target.id);
    const { credential, ...own } =
      "token" in body
        ? await this.#checkToken(target, body.token)
        : await this.#checkLogin(target, body);
    const credentials = new Map([
      ...(current?.credentials ?? []),
      [target.id, credential] as const,
    ]);
    if (current?.tokens !== undefined) return { ...current, credentials };
    return { method: "credentials", ...own, credentials };
  }

  /**
   * Throws unless a service checks credentials. One without any takes every request from this machine for its operator's,
   * and with it every request that is forwarded.
   */
  async requireCredentials(id: ServiceId): Promise<void> {
    if ((this.#infos.get(id)?.credentials ?? null) === null) await this.#read();
    const info = this.#infos.get(id);
    if (info === undefined) throw createConsoleError("service_down");
    if (info.credentials !== null) return;
    throw createConsoleError("not_signed_in_to_service", {
      detail: "The service has no credentials configured; open its own console on its machine.",
    });
  }

  async #read(): Promise<void> {
    const { targets, known, clock } = this.#options;
    await Promise.all(
      [...targets.values()].map(async ({ id, url }) => {
        const before = this.#infos.get(id) ?? known.get(id);
        try {
          const own = known.get(id);
          const path = own === undefined ? "/console/config" : "/healthz";
          const { text } = await askTarget(new URL(path, url), { timeoutMs: CONFIG_MS });
          const info = own ?? configSchema.parse(JSON.parse(text)).services[0]!;
          this.#infos.set(id, { ...info, isUp: true });
        } catch {
          if (before !== undefined) this.#infos.set(id, { ...before, isUp: false });
        }
      }),
    );
    this.#readAtMs = clock.monotonicMs();
  }

  // Callers without rights are refused with 403: their token is a valid one.
  async #checkToken({ id, url }: Target, token: string) {
    const { status } = await askTarget(new URL(ATTENTION_PATH, url), {
      headers: { authorization: `Bearer ${token.replaceAll(/[^\x21-\x7e]/g, "")}` },
      timeoutMs: LOGIN_MS,
    });
    if (status === 401) throw createUnauthorizedError("The token is wrong.");
    if (status !== 200 && status !== 403) throw createConsoleError("service_down");
    const credential: Credential = { kind: "bearer", token };
    return {
      credential,
      user: { id: `${id} token`, name: "operator" },
      isAdmin: status === 200,
      permissions: [],
      roles: [],
    };
  }

  async #checkLogin({ url }: Target, { service: _service, ...body }: LoginRequest) {
    const { status, headers, text } = await askTarget(new URL("/console/login", url), {
      method: "POST",
      headers: { "content-type": "application/json", origin: url.origin },
      body: JSON.stringify(body),
      timeoutMs: LOGIN_MS,
    });
    if (status === 401) throw createUnauthorizedError("The credentials are wrong.");
    if (status !== 200) throw explainRefusal(text);
    const session = JSON.parse(text) as ConsoleSession;
    const cookie = headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
    const credential: Credential = { kind: "cookie", cookie };
    return {
      credential,
      user: session.user,
      isAdmin: session.is_admin,
      permissions: session.permissions,
      roles: session.roles,
    };
  }
}

function explainRefusal(text: string): Error {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    if (typeof detail === "string") return createConsoleError("service_down", { detail });
  } catch {
    // Not a problem document.
  }
  return createConsoleError("service_down");
}
