// Credentials that the gateway holds for an upstream.
import { z } from "zod";
import { cuttableField, filePath, text, unset } from "./value.ts";

/** Schema of {@link UpstreamAuthConfig}. */
export const upstreamAuthSchema = z
  .strictObject({
    header: unset(cuttableField()).meta({
      description: "request field with the credential; default: Authorization",
    }),
    env: unset(text(256)).meta({ description: "environment variable that has the credential" }),
    file: unset(filePath()).meta({
      description: "file that has the credential, read again at each reload",
    }),
    prefix: unset(
      z
        .string()
        .max(64)
        .regex(/^[\x20-\x7e]*$/),
    ).meta({
      description: "text before the credential; default: `Bearer ` in Authorization, else nothing",
    }),
  })
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), {
    error: "set exactly one of env, file",
  });

/** Fields of a route. */
export const upstreamAuthFields = {
  upstream_auth: unset(upstreamAuthSchema).meta({
    description:
      "credential for the upstream, instead of the client's Authorization, X-API-Key and API-Key; it is not mirrored and not recorded",
  }),
};

/** A validated credential for the upstream. */
export interface UpstreamAuthConfig {
  readonly header?: string;
  readonly env?: string;
  readonly file?: string;
  readonly prefix?: string;
}

/** Validated {@link upstreamAuthFields}. */
export interface UpstreamAuthFields {
  readonly upstream_auth?: UpstreamAuthConfig;
}
