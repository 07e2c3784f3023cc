// Steps that answer instead of an upstream, and the one that rewrites the forwarded path.
import { RE2JS } from "re2js";
import { PlatformError } from "@platform/kernel/errors";
import { answerWith } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import { readPaths } from "../../exchange/request-path.ts";
import type { RedirectSpec, RouteSpec } from "../../shared-state/index.ts";

/** Java's notation, of which `${name}` is part; JavaScript's has `$<name>`. */
const INSERTS_NAMED = true;

/** Answers every request with a fixed response. */
export function createRespondStep({ steps: { respond } }: RouteSpec): Step | undefined {
  if (respond === undefined) return undefined;
  const { status, headers, body } = respond;
  const answer = {
    status,
    headers: headers.map(([name, value]): [string, string] => [name, value]),
    body,
  };
  return {
    run(exchange) {
      answerWith(exchange, answer);
      return false;
    },
  };
}

/** Sends every client to another address. */
export function createRedirectStep(spec: RouteSpec): Step | undefined {
  const { redirect } = spec.steps;
  if (redirect === undefined) return undefined;
  return {
    run(exchange) {
      const location = fillIn(redirect, exchange, spec.prefix);
      answerWith(exchange, { status: redirect.status, headers: [["Location", location]] });
      return false;
    },
  };
}

/** Rewrites the forwarded path. */
export function createRewriteStep({ steps: { rewrite } }: RouteSpec): Step | undefined {
  if (rewrite === undefined) return undefined;
  const rules = rewrite.map((rule) => ({ ...rule, compiled: RE2JS.compile(rule.pattern) }));
  return {
    run(exchange) {
      const [path = "/"] = readPaths(exchange);
      for (const { compiled, to } of rules) {
        const matcher = compiled.matcher(path);
        if (!matcher.find()) continue;
        exchange.forwardPath = checkPath(matcher.replaceFirst(to, INSERTS_NAMED));
        return true;
      }
      return true;
    },
  };
}

function fillIn({ to }: Pick<RedirectSpec, "to">, exchange: GateExchange, prefix: string): string {
  const { head, userData } = exchange;
  const [path = "/"] = readPaths(exchange);
  const values: Readonly<Record<string, string>> = {
    "{path}": path,
    "{rest}": path.slice(prefix.replace(/\/+$/, "").length),
    "{query}": head.bytes.toString("latin1", head.pathEnd, head.targetEnd),
    "{host}": userData.forwarding.host,
  };
  const location = to.replaceAll(/\{(?:path|rest|query|host)\}/g, (name) => values[name] ?? "");
  // A path of two slashes would be the address of another host.
  return to.startsWith("/") ? location.replace(/^[/\\]+/, "/") : location;
}

/** Throws `bad_request` if the path cannot be forwarded. */
function checkPath(path: string): string {
  const isPath = /^\/[\x21-\x7e]*$/.test(path) && !/[?#]/.test(path);
  const climbs = path.split("/").some((segment) => segment === ".." || segment === ".");
  if (isPath && !climbs) return path;
  throw new PlatformError("bad_request", "The rewritten path is not valid.");
}
