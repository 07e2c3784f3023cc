// Contract of the web console: documents and messages that its server sends to the page. Types only, without imports,
// so that the page's bundle can use them.

/** Short name of a service; `runtime` is `platform up` itself. */
export type ServiceId = "gate" | "auth" | "vault" | "pulse" | "notify" | "tunnel" | "runtime";

/** Ways to sign in: identity, a service's own credentials, or none for programs on this machine. */
export type SignInMethod = "oidc" | "credentials" | "loopback";

/** Members that `POST /console/login` expects for a service. */
export type CredentialForm = "token" | "password" | "keys";

/** A service of the console. */
export interface ServiceInfo {
  id: ServiceId;
  /** Prefix of its paths: `base + "/api/v1/…"`. Empty if the service serves the page itself. */
  base: string;
  /** Empty if it was never reached. */
  version: string;
  /** Parts of its API that it provides; see `Feature`. A page hides the others. */
  features: string[];
  /** The service's own credentials; `null` if it has none. */
  credentials: CredentialForm | null;
  /** False if it did not answer the last request for its configuration. */
  is_up: boolean;
}

/** Answer of `GET /console/config`, which needs no session. */
export interface ConsoleConfig {
  /** `service`: one service serves its own page. `platform`: one page for all services. */
  mode: "service" | "platform";
  /** In order of preference. */
  sign_in: SignInMethod[];
  services: ServiceInfo[];
}

/**
 * Body of `POST /console/login`. `service` is required in the mode `platform`; a session can have credentials of
 * several services. Wrong credentials are 401, more than ten failures of an address within 15 minutes 429.
 */
export type LoginRequest = { service?: ServiceId } & (
  | { token: string }
  | { access_key: string; secret_key: string }
  | { username: string; password: string }
);

/** Answer of `GET /console/session` and `POST /console/login`. Without a session `GET` answers 401. */
export interface ConsoleSession {
  method: SignInMethod;
  /** `id` is the subject of a token; `name` a user's name, a key's id, or `operator`. */
  user: { id: string; name: string };
  /** Services that the session can call. */
  services: ServiceId[];
  /** True if the session has all permissions: of operators, root keys and administrators (`*:*`). */
  is_admin: boolean;
  /** Scopes of the user's token, such as `users:read`. Services decide; this is for disabled buttons. */
  permissions: string[];
  roles: string[];
  /** RFC 3339. */
  signed_in_at: string;
  /** The end of the session if it remains unused; it moves with each request. RFC 3339. */
  idle_expires_at: string;
  /** The end of the session in any case. RFC 3339. */
  expires_at: string;
  /**
   * Time until which changes of users, keys and deletions need no new sign-in, RFC 3339; `null` if they never need one.
   * Later they are refused with 401 and `reason: "recent_sign_in_required"`.
   */
  recent_until: string | null;
}

/** Answer of `POST /console/logout`. */
export interface LogoutAnswer {
  /** Address at which identity ends its own session; the page opens it. `null` if there is nothing to end. */
  end_session_url: string | null;
}

/** Error body of the console and of all services (RFC 9457, `application/problem+json`). */
export interface ConsoleProblem {
  type: string;
  title: string;
  status: number;
  /** A sentence for the user. */
  detail: string;
  instance: string;
  /** From the platform's closed list, such as `unauthorized`, `forbidden`, `precondition_failed`. */
  code: string;
  /** Same as `detail`. */
  error: string;
  /** To be shown for copying; may be empty. */
  trace_id: string;
  /**
   * Of the console's own errors. `no_session`: sign in. `session_expired`: sign in again. `recent_sign_in_required`:
   * sign in again, then repeat the request. `not_signed_in_to_service`: the session has no credentials of this service.
   * `service_down`: it does not answer. `foreign_origin`: the request did not come from the console's page.
   */
  reason?: ConsoleReason;
  /** Members of the request that are wrong; with a code, the page has words of its own language. */
  errors?: {
    in: string;
    path: string;
    message: string;
    code?: string;
    params?: Readonly<Record<string, string | number>>;
  }[];
}

/** Reasons of the console's own errors. */
export type ConsoleReason =
  | "no_session"
  | "session_expired"
  | "recent_sign_in_required"
  | "not_signed_in_to_service"
  | "service_down"
  | "sessions_unavailable"
  | "foreign_origin";

/** Description of a figure, such as requests per second. */
export interface FigureInfo {
  name: string;
  /** `1/s`, `ms`, `bytes` …; empty for plain numbers. */
  unit: string;
  title: string;
}

/** A condition that needs an operator. */
export interface AttentionItem {
  /** Stable while the condition lasts; unique within its service. */
  id: string;
  level: "warning" | "critical";
  title: string;
  /** The cause and the remedy. */
  detail: string;
  /** Path in the console. */
  href?: string;
  /** RFC 3339. */
  since: string;
  service: ServiceId;
}

/** A change of configuration or of objects by a person. */
export interface ChangeItem {
  /** RFC 3339. */
  at: string;
  title: string;
  /** A user's name, or `operator`. */
  actor?: string;
  /** Path in the console. */
  href?: string;
}

/** Values of figures by name; `null` without a sample. */
export type FigureValues = Record<string, number | null>;

/**
 * Messages of the WebSocket `/console/live`, JSON, one object per message. Each service begins with `hello`, again
 * after it was `down`. It closes with 4401 when the session has ended, and with 1001 when the server stops.
 */
export type LiveMessage =
  | {
      type: "hello";
      service: ServiceId;
      version: string;
      /** Epoch ms. */
      at: number;
      figures: FigureInfo[];
      values: FigureValues;
      attention: AttentionItem[];
      changes: ChangeItem[];
    }
  | { type: "figures"; service: ServiceId; at: number; values: FigureValues }
  | { type: "attention"; service: ServiceId; items: AttentionItem[] }
  | ({ type: "change"; service: ServiceId } & ChangeItem)
  | {
      type: "down";
      service: ServiceId;
      /** Epoch ms since which the service's feed is lost. */
      since: number;
      /** HTTP status of the refusal; 0 if the service did not answer. */
      status: number;
      detail: string;
    };

/** A line of the combined log, as `platform up` lists and streams them. */
export interface LogLine {
  /** Derived from the content: equal lines have equal ids. */
  id: string;
  /** RFC 3339. */
  timestamp: string;
  level: string;
  /** Short name; `platform` for the supervisor. */
  service: string;
  msg: string;
  /** Empty without a trace. */
  trace_id: string;
  /** All other fields. */
  fields: Record<string, unknown>;
}

/** Close code of `/console/live` when the session has ended. */
export type SessionEndedCloseCode = 4401;
