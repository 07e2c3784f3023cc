// Fields of a route that pass its requests and responses by WebAssembly guests.
import { z } from "zod";
import { GUEST_DIGEST_CHARACTERS } from "../shared-state/index.ts";
import { text, unset, wholeNumber } from "./value.ts";

const WEIGHT_MAX = 1_000_000;
const TARGETS_MAX = 64;
const CONFIG_CHARACTERS_MAX = 65_536;

/** Name of a guest. */
export const GUEST_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const REFERENCE = new RegExp(
  `^[a-z0-9][a-z0-9._-]{0,62}(?:@[0-9a-f]{${GUEST_DIGEST_CHARACTERS}})?$`,
);
const STICKY = /^(?:none|ip|cookie|header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256})$/;

const guestReference = () =>
  text(128).refine((value) => REFERENCE.test(value), {
    error: `expected the name of a middleware, and "@" with ${GUEST_DIGEST_CHARACTERS} digits of its SHA-256 for a certain version`,
  });

const splitTargetSchema = z.strictObject({
  middleware_name: guestReference().meta({ description: "name of the middleware" }),
  weight: wholeNumber(0, WEIGHT_MAX).meta({
    description: "share relative to the sum of all weights",
  }),
});

const splitSchema = z.strictObject({
  targets: z
    .array(splitTargetSchema)
    .min(1)
    .max(TARGETS_MAX)
    .refine(
      (entries) => new Set(entries.map((entry) => entry.middleware_name)).size === entries.length,
      { error: "expected distinct names" },
    )
    .refine((entries) => entries.some((entry) => entry.weight > 0), {
      error: "expected weights with a sum above 0",
      params: { code: "no_weight" },
    }),
  sticky: unset(
    text(300).refine((value) => STICKY.test(value), {
      error: 'expected none, ip, cookie or "header:NAME"',
    }),
  ).meta({
    description:
      "what keeps a client at its middleware: `none` (default), `ip`, `header:NAME`, or `cookie` (`_platform_split`, for a day)",
  }),
});

/** Fields of {@link RouteMiddlewareFields} with their schemas. */
export const routeMiddlewareFields = {
  middleware: unset(guestReference()).meta({
    description:
      "WebAssembly middleware whose `handle_request` requests pass; `NAME@<12 digits>` selects a version",
  }),
  response_middleware: unset(guestReference()).meta({
    description: "WebAssembly middleware whose `handle_response` responses pass",
  }),
  wasm_split: unset(splitSchema).meta({
    description: "middleware by weight instead: each request passes both functions of one",
  }),
  middleware_config: unset(
    z.union([
      z.string().max(CONFIG_CHARACTERS_MAX),
      z.record(z.string(), z.unknown()),
      z.array(z.unknown()),
    ]),
  )
    .refine((value) => describeGuestConfig(value).length <= CONFIG_CHARACTERS_MAX, {
      error: `expected at most ${CONFIG_CHARACTERS_MAX} characters`,
    })
    .meta({ description: "settings that the middleware reads: text, or JSON" }),
};

/** Validated {@link routeMiddlewareFields}. */
export interface RouteMiddlewareFields {
  readonly middleware?: string;
  readonly response_middleware?: string;
  readonly wasm_split?: {
    readonly targets: readonly { readonly middleware_name: string; readonly weight: number }[];
    readonly sticky?: string;
  };
  readonly middleware_config?: string | Readonly<Record<string, unknown>> | readonly unknown[];
}

/** Refuses fields that contradict each other. */
export function checkMiddlewareFields(
  route: RouteMiddlewareFields,
  context: z.core.$RefinementCtx,
): void {
  const refuse = (path: string, message: string): void =>
    context.addIssue({ code: "custom", path: [path], message });
  const { middleware, response_middleware: response, wasm_split: split } = route;
  if (split !== undefined && (middleware !== undefined || response !== undefined))
    refuse("wasm_split", "is not allowed with middleware or response_middleware");
  const hasGuest = [middleware, response, split].some((field) => field !== undefined);
  if (route.middleware_config !== undefined && !hasGuest)
    refuse("middleware_config", "is allowed only with middleware");
}

/** Settings of a guest as it reads them. */
export function describeGuestConfig(config: RouteMiddlewareFields["middleware_config"]): string {
  if (config === undefined) return "";
  return typeof config === "string" ? config : JSON.stringify(config);
}

/** The guests that a route names. */
export function listGuestReferences(route: RouteMiddlewareFields): string[] {
  const named = [route.middleware, route.response_middleware];
  const split = route.wasm_split?.targets.map((target) => target.middleware_name) ?? [];
  return [...new Set([...named, ...split])].filter((reference) => reference !== undefined);
}
