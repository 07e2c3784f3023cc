// Schemas of WebAuthn credentials as browsers send them (WebAuthn Level 3, section 5.1), with bounds.
import { z } from "zod";

const base64url = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[\w-]+={0,2}$/);
/** A credential id. */
export const credentialId = base64url(1400);
const extras = {
  type: z.literal("public-key"),
  rawId: credentialId,
  authenticatorAttachment: z.string().max(32).nullish(),
  clientExtensionResults: z.record(z.string().max(64), z.unknown()).default({}),
};
/** The result of `navigator.credentials.create` as JSON. */
export const registration = z.object({
  id: credentialId,
  ...extras,
  response: z.object({
    clientDataJSON: base64url(8192),
    attestationObject: base64url(32_768),
    transports: z.array(z.string().max(32)).max(10).optional(),
  }),
});
/** The result of `navigator.credentials.get` as JSON. */
export const assertion = z.object({
  id: credentialId,
  ...extras,
  response: z.object({
    clientDataJSON: base64url(8192),
    authenticatorData: base64url(8192),
    signature: base64url(8192),
    userHandle: base64url(256)
      .nullish()
      .transform((handle) => handle ?? undefined),
  }),
});
