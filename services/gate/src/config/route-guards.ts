// Fields of a route that decide who may use it.
import { type GuardFields, guardFields } from "@platform/kernel/route-rules";
import { type RouteAuthConfig, routeAuthSchema } from "./route-auth.ts";
import { z } from "zod";
import { text, unset, yesNo } from "./value.ts";

const NAMES_MAX = 256;
const NAME_CHARS_MAX = 1_024;

/** Fields of {@link RouteGuardFields} with their schemas. */
export const routeGuardFields = {
  auth: unset(routeAuthSchema).meta({
    description: "access control of the route instead of the global token and JWT settings",
  }),
  ...guardFields,
  require_client_certificate: yesNo().meta({
    description:
      "refuse clients without a certificate (403); requires `client_certificates` of the listener",
  }),
  client_certificate_names: unset(z.array(certificateName()).min(1).max(NAMES_MAX)).meta({
    description:
      "names of client certificates (subjectAltName) that may use the route: DNS names, `spiffe://…` and other URIs, e-mail or IP addresses; one `*` stands for any characters. Requires `require_client_certificate`",
  }),
};

function certificateName() {
  return text(NAME_CHARS_MAX).refine((name) => name.split("*").length <= 2, {
    error: 'expected at most one "*"',
  });
}

/** Validated {@link routeGuardFields}. */
export interface RouteGuardFields extends GuardFields {
  readonly require_client_certificate?: boolean;
  readonly client_certificate_names?: readonly string[];
  readonly auth?: RouteAuthConfig;
}

/** Names of certificates require a certificate. */
export function checkClientCertificates(
  route: { client_certificate_names?: unknown; require_client_certificate?: unknown },
  context: z.RefinementCtx,
): void {
  if (route.client_certificate_names === undefined || route.require_client_certificate === true)
    return;
  context.addIssue({
    code: "custom",
    path: ["client_certificate_names"],
    message: "is allowed only with require_client_certificate",
  });
}
