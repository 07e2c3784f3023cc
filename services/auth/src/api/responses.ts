// Schemas of the responses, for the OpenAPI document.
import { z } from "zod";

const time = z.string().meta({ format: "date-time" });
const texts = z.array(z.string()).readonly();
const cursor = z.string().nullable();

/** The result of `showUser`. */
const user = z
  .object({
    id: z.string(),
    username: z.string(),
    email: z.string().optional(),
    email_verified: z.boolean().optional(),
    name: z.string().optional(),
    picture: z.string().optional(),
    tenant: z.string().optional(),
    disabled: z.boolean().optional(),
    created_at: time,
  })
  .meta({ id: "User" });

/** `{user}`. */
export const userAnswer = z.object({ user });

/** The response to a sign-in; the token members are present if tokens were requested. */
export const signedIn = z
  .object({
    access_token: z.string().optional(),
    token: z.string().optional().meta({ description: "The same as access_token." }),
    token_type: z.string().optional(),
    expires_in: z.int().optional().meta({ description: "Seconds." }),
    refresh_token: z.string().optional(),
    scope: z.string().optional(),
    session_token: z.string(),
    user,
  })
  .meta({ id: "SignedIn" });

/** The caller. */
export const whoAnswer = z.object({
  actor: z.string(),
  user: user.optional(),
  roles: texts,
  effective_permissions: texts,
});

/** The user's grants to applications. */
export const grantsAnswer = z.object({
  grants: z.array(
    z.object({
      client_id: z.string(),
      client_name: z.string(),
      client_uri: z.string().optional(),
      scopes: texts,
      granted_at: time,
      expires_at: time,
    }),
  ),
});

/** Live sessions. */
export const sessionsAnswer = z.object({
  sessions: z
    .array(
      z
        .object({
          id: z.string(),
          device: z.string(),
          user_agent: z.string(),
          ip: z.string(),
          created_at: time,
          last_seen_at: time,
          expires_at: time,
          current: z.boolean(),
          amr: texts,
          user: z
            .object({ id: z.string(), username: z.string() })
            .optional()
            .meta({ description: "Only in the list of all users." }),
        })
        .meta({ id: "Session" }),
    )
    .readonly(),
  next_cursor: cursor.optional().meta({ description: "Only in the list of all users." }),
});

const factor = z
  .object({
    id: z.string(),
    type: z.string(),
    name: z.string(),
    sent_to: z.string().optional(),
    created_at: time,
    last_used_at: time.nullable(),
  })
  .meta({ id: "Factor" });

/** The user's factors. */
export const factorsAnswer = z.object({ factors: z.array(factor) });

/** A factor that is being set up: an authenticator app, or an address that codes are sent to. */
export const factorSetup = z.union([
  z.object({
    id: z.string(),
    secret: z.string(),
    otpauth_uri: z.string(),
    qr: z.string().meta({ description: "A data URL of the QR code." }),
    backup_codes: z.array(z.string()),
  }),
  z.object({ id: z.string(), sent_to: z.string() }),
]);

/** The response to a valid code: a sign-in, or a confirmed factor. */
export const codeAnswer = signedIn.extend({
  verified: z.boolean().optional().meta({ description: "Of a confirmed factor." }),
});

/** The challenge of a step-up, if one is needed. */
export const stepUpAnswer = z.object({
  satisfied: z.boolean(),
  challenge: z
    .object({
      mfa_token: z.string(),
      factors: z.array(factor.omit({ created_at: true, last_used_at: true })),
      enrolment_required: z.boolean().optional(),
    })
    .optional(),
});

/** The address that a code or link was sent to. */
export const sentAnswer = z.object({ sent_to: z.string().optional() });

const policy = z
  .object({
    scope: z.enum(["group", "role", "client"]),
    subject: z.string(),
    required: z.boolean(),
  })
  .meta({ id: "MfaPolicy" });

export const policyAnswer = policy;
export const policiesAnswer = z.object({ policies: z.array(policy).readonly() });

/** Options for the browser's `navigator.credentials`. */
export const challengeAnswer = z.object({
  challenge: z.object({ publicKey: z.unknown() }),
});

const passkey = z
  .object({
    id: z.string(),
    name: z.string(),
    synced: z.boolean(),
    created_at: time,
    last_used_at: time.nullable(),
  })
  .meta({ id: "Passkey" });

/** A new passkey and its user. */
export const newPasskeyAnswer = z.union([
  signedIn.extend({ passkey }),
  z.object({ passkey, user }),
]);
/** `{passkey}`. */
export const passkeyAnswer = z.object({ passkey });
/** The user's passkeys. */
export const passkeysAnswer = z.object({ passkeys: z.array(passkey) });

/** The ways in which a user can sign in. */
export const userFactorsAnswer = z.object({
  has_password: z.boolean(),
  passkeys: z.array(passkey),
  factors: z.array(factor),
});

/** Effective permissions of a user. */
export const userPermissionsAnswer = z.object({
  roles: texts.meta({ description: "Bound and inherited roles." }),
  permissions: z.array(
    z.object({
      name: z.string(),
      roles: texts.meta({ description: "Those of the roles that have it themselves." }),
    }),
  ),
});

/** Metadata of RFC 7591, with members of the platform; others are those of OpenID Connect. The core returns it untyped. */
export const client: z.ZodType<Record<string, unknown>, Record<string, unknown>> = z
  .looseObject({
    client_id: z.string(),
    client_name: z.string().optional(),
    client_secret: z.string().optional(),
    grant_types: z.array(z.string()),
    redirect_uris: z.array(z.string()),
    scope: z.string().optional(),
    token_endpoint_auth_method: z.string().optional(),
    first_party: z.boolean().optional(),
  })
  .meta({ id: "Client" });
/** A page of clients. */
export const clientsAnswer = z.object({ clients: z.array(client).readonly(), next_cursor: cursor });

/** Logo of a client. */
export const logoAnswer = z.object({
  type: z.string(),
  image: z.base64(),
});

/** Signing keys. */
export const keysAnswer = z.object({
  keys: z.array(
    z
      .object({
        kid: z.string(),
        algorithm: z.string(),
        state: z.enum(["pending", "active", "retired", "revoked"]),
        created_at: time,
        activates_at: time,
        expires_at: time.optional(),
      })
      .meta({ id: "SigningKey" }),
  ),
});

/** A role. */
export const role = z
  .object({
    name: z.string(),
    description: z.string(),
    permissions: texts,
    parents: texts,
    builtin: z.boolean(),
  })
  .meta({ id: "Role" });
export const rolesAnswer = z.object({ roles: z.array(role).readonly() });

/** Roles of a subject, with `user_id`, `group_id` or `client_id`; effective permissions of users and clients. */
export const bindingAnswer = z.object({
  user_id: z.string().optional(),
  group_id: z.string().optional(),
  client_id: z.string().optional(),
  roles: texts,
  effective_permissions: texts.optional(),
});

/** A scope. */
export const scope = z
  .object({
    name: z.string(),
    description: z.string(),
    permissions: texts,
    roles: texts.meta({
      description: "The scope conveys the permissions that these roles have when it is used.",
    }),
    first_party: z
      .boolean()
      .meta({ description: "First-party clients get the scope without the user's consent." }),
  })
  .meta({ id: "Scope" });
export const scopesAnswer = z.object({ scopes: z.array(scope).readonly() });

/** A page of users. */
export const usersAnswer = z.object({ users: z.array(user).readonly(), next_cursor: cursor });

const group = z
  .object({ id: z.string(), name: z.string(), created_at: time })
  .meta({ id: "Group" });
/** `{group}`. */
export const groupAnswer = z.object({ group });
/** A page of groups. */
export const groupsAnswer = z.object({ groups: z.array(group).readonly(), next_cursor: cursor });
/** A page of members. */
export const membersAnswer = z.object({
  members: texts.meta({ description: "Ids of the users." }),
  users: z.array(z.object({ id: z.string(), username: z.string() })).readonly(),
  next_cursor: cursor,
});

/** A page of invitations. */
export const invitationsAnswer = z.object({
  invitations: z.array(z.object({ id: z.string(), created_at: time, expires_at: time })).readonly(),
  next_cursor: cursor,
});

/** A page of the audit log. */
export const eventsAnswer = z.object({
  events: z
    .array(
      z.object({
        seq: z.int(),
        at: time,
        action: z.string(),
        outcome: z.enum(["success", "failure"]),
        actor: z.string(),
        target: z.string(),
        ip: z.string(),
        detail: z.unknown(),
        hash: z.string().meta({ description: "Covers the event and the hash before it." }),
      }),
    )
    .readonly(),
  next_cursor: cursor,
});
