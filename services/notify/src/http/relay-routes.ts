// The relay of mail: what is set and by which source, setting it, and sending a test. Passwords are never answered.
import { z } from "zod";
import {
  createValidationError,
  defineRoute,
  NO_BODY,
  type ApiRoute,
  type RateLimit,
} from "@platform/kernel/http";
import { EVERY_SCOPE, needScope, type Caller } from "@platform/kernel/identity";
import { parseMailbox } from "../address/mailbox.ts";
import { RELAY_KEYS } from "../relay/stored-relay.ts";
import type { RelaySettings, RelayTrial } from "../relay/relay-settings.ts";
import { clientOf, requireManager } from "./access.ts";

/** Options of {@link createRelayRoutes}. */
export interface RelayRoutesOptions {
  relay: RelaySettings;
  domains: { sign: (content: Buffer, domain: string) => Promise<string> };
  /** Limit of tests, of all callers together. */
  trialRate: RateLimit;
  onChange: (title: string, actor: string) => void;
}

const PATH = "/api/v1/settings/relay";
const NO_CONTROL = /^\P{Cc}*$/u;
/** All mail passes through the relay, and a test connects to any address. */
const requireAdministrator = needScope(EVERY_SCOPE);

const relayBody = z.strictObject({
  host: z
    .string()
    .min(1)
    .max(253)
    .regex(/^[\p{L}\p{N}._:-]+$/u, "a host name or an IP address")
    .optional(),
  port: z.int().min(1).max(65_535).optional(),
  user: z.string().min(1).max(1_024).regex(NO_CONTROL, "no control characters").optional(),
  pass: z.string().min(1).max(8_192).regex(NO_CONTROL, "no control characters").optional(),
});
const trialBody = relayBody.extend({ to: z.string().min(1).max(320) });

const relayAnswer = z.object({
  keys: z.array(
    z.object({
      name: z.enum(RELAY_KEYS),
      value: z.union([z.string(), z.int()]).nullable().describe("Null for the password."),
      set: z.boolean(),
      source: z.enum(["configuration", "stored", "default"]),
      place: z.string().nullable().describe("Place in the configuration, which takes precedence."),
    }),
  ),
  obstacle: z
    .object({ key: z.string(), place: z.string() })
    .nullable()
    .describe("Key of the configuration because of which a relay cannot be set here."),
  sends: z.boolean().describe("False if mail is kept in the development inbox."),
  restart_needed: z.boolean(),
  set_by: z.string().nullable(),
  set_at: z.string().nullable(),
});

const trialAnswer = z.object({
  outcome: z.enum(["sent", "rejected", "deferred", "unreachable"]),
  from: z.string(),
  relay: z.string(),
  code: z.int().nullable(),
  enhanced: z.string().nullable(),
  text: z.string(),
});

export function createRelayRoutes(options: RelayRoutesOptions): ApiRoute[] {
  const { relay, onChange } = options;
  const operation = { tag: "Settings", path: PATH } as const;
  return [
    defineRoute({
      ...operation,
      access: requireManager,
      method: "GET",
      summary: "The relay, and the source of each key",
      answer: relayAnswer,
      handle: () => describe(relay),
    }),
    defineRoute({
      ...operation,
      access: requireAdministrator,
      method: "PUT",
      summary: "Set the relay, under the keys of the configuration file",
      description:
        "Keys of the configuration take precedence and are refused here. The password is stored encrypted; without `pass` it stays, for the same host, port and user. A relay in place of another one is used immediately; the first one needs a restart (`restart_needed`).",
      body: relayBody,
      answer: relayAnswer,
      handle: async ({ body, caller }) => {
        await relay.set(body, nameActor(caller));
        onChange("mail relay set", nameActor(caller));
        return describe(relay);
      },
    }),
    defineRoute({
      ...operation,
      access: requireAdministrator,
      method: "DELETE",
      summary: "Remove the relay that was set here",
      answer: NO_BODY,
      handle: async ({ caller }) => {
        await relay.remove();
        onChange("mail relay removed", nameActor(caller));
      },
    }),
    createTrialRoute(options),
  ];
}

function createTrialRoute({ relay, domains, trialRate }: RelayRoutesOptions): ApiRoute {
  return defineRoute({
    tag: "Settings",
    access: requireAdministrator,
    method: "POST",
    path: `${PATH}/test`,
    summary: "Send a test through a relay, without setting it",
    description: "Answers the reply of the relay, within a minute.",
    body: trialBody,
    answer: trialAnswer,
    problems: { 429: "Too many tests" },
    handle: async ({ body: { to, ...change } }) => {
      const parsed = parseMailbox(to);
      if (!parsed.ok)
        throw createValidationError([{ in: "body", path: "to", message: parsed.reason }]);
      trialRate.take("", 1);
      const sign = (content: Buffer, domain: string) => domains.sign(content, domain);
      return toAnswer(await relay.try(change, parsed.mailbox, sign));
    },
  });
}

function describe(relay: RelaySettings): z.input<typeof relayAnswer> {
  const { setBy, obstacle } = relay;
  return {
    keys: relay.list().map(({ isSet, ...key }) => ({ ...key, set: isSet })),
    obstacle: obstacle ?? null,
    sends: relay.isSending,
    restart_needed: relay.isRestartNeeded,
    set_by: setBy?.setBy ?? null,
    set_at: setBy === undefined ? null : new Date(setBy.setAtMs).toISOString(),
  };
}

function toAnswer({ kind, from, reply }: RelayTrial): z.input<typeof trialAnswer> {
  const { relay, code, enhanced, text } = reply;
  return { outcome: kind, from, relay, code: code ?? null, enhanced: enhanced ?? null, text };
}

function nameActor(caller: Caller): string {
  const name = caller.kind === "anonymous" ? "" : clientOf(caller);
  return name === "" ? "operator" : name;
}
