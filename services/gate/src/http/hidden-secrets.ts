// Routes as callers see them who may only read: without values that can be secrets.
import { isSecretName, REDACTED, redactText } from "@platform/kernel/log";
import type { RouteConfig } from "../config/route.ts";

/** The end of a policy line that compares a header field: its value can be a shared secret. */
const HEADER_CONDITION = /(\bif[ \t]+header\.[^ \t]+[ \t]*==[ \t]*).+$/gm;

type Rules = NonNullable<RouteConfig["request_headers"]>;
type Values = Readonly<Record<string, string>>;

/**
 * Hides values of request fields for the upstream, which clients never see, credentials in fixed responses, header values
 * of policies, settings of middleware, and the queries of URLs that the gateway itself calls.
 */
export function hideSecrets(route: RouteConfig): RouteConfig {
  const { request_headers: request, response_headers: response, respond, policy, auth } = route;
  return {
    ...route,
    ...(route.middleware_config === undefined ? {} : { middleware_config: REDACTED }),
    ...(request === undefined ? {} : { request_headers: changeValues(request, () => REDACTED) }),
    ...(response === undefined ? {} : { response_headers: changeValues(response, hideCredential) }),
    ...(respond?.headers === undefined
      ? {}
      : { respond: { ...respond, headers: mapValues(respond.headers, hideCredential) } }),
    ...(policy === undefined
      ? {}
      : { policy: policy.replaceAll(HEADER_CONDITION, `$1${REDACTED}`) }),
    ...(auth === undefined
      ? {}
      : {
          auth: {
            ...auth,
            ...(auth.url === undefined ? {} : { url: hideQuery(auth.url) }),
            ...(auth.jwks_url === undefined ? {} : { jwks_url: hideQuery(auth.jwks_url) }),
          },
        }),
  };
}

function changeValues(rules: Rules, change: (name: string, value: string) => string): Rules {
  const { set, add } = rules;
  return {
    ...rules,
    ...(set === undefined ? {} : { set: mapValues(set, change) }),
    ...(add === undefined ? {} : { add: mapValues(add, change) }),
  };
}

function mapValues(values: Values, change: (name: string, value: string) => string) {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, change(name, value)]),
  );
}

function hideCredential(name: string, value: string): string {
  return isSecretName(name) ? REDACTED : redactText(value);
}

function hideQuery(url: string): string {
  return url.replace(/\?.*$/s, `?${REDACTED}`);
}
