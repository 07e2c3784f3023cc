// The matrix of hostile text: every screen of the rail, and the pages below them.
import assert from "node:assert/strict";
import { listSections, type ConsolePage } from "../chromium.ts";
import { withPayload } from "./hostile.ts";

/** A route that fails, one that has an access log and a cache, and one with a certificate. */
export const ROUTE = "/broken";
/** The topic with messages, a schema and groups. */
export const TOPIC = "orders";

// The page finds a route by its name, which has the payload.
const ROUTE_PATH = `/gateway/routes/${encodeURIComponent(withPayload(ROUTE))}`;

/** Screens of the gateway, identity, storage and the runtime. */
export const SERVICE_SCREENS: readonly string[] = [
  "/",
  "/gateway/routes",
  ROUTE_PATH,
  `${ROUTE_PATH}/json`,
  `${ROUTE_PATH}/edit`,
  `${ROUTE_PATH}/edit?as=json`,
  "/gateway/upstreams",
  "/gateway/certificates",
  "/gateway/cache",
  "/gateway/keys",
  "/gateway/models",
  "/gateway/log",
  "/identity/users",
  "/identity/groups",
  "/identity/sessions",
  "/identity/roles",
  "/identity/clients",
  "/identity/keys",
  "/identity/audit",
  "/storage/buckets",
  "/storage/buckets/pictures",
  "/storage/buckets/-/pictures/replication",
  "/storage/buckets/-/pictures/cold-tier",
  "/storage/users",
  "/storage/drives",
  "/storage/events",
  "/storage/jobs",
  "/storage/encryption",
  "/storage/remotes",
  "/projects",
  "/runtime/services",
  "/runtime/schedules",
  "/runtime/logs",
];

/** Screens of messaging and tunnels. */
export const TRAFFIC_SCREENS: readonly string[] = [
  "/messaging/topics",
  ...["tail", "browse", "groups", "dead", "anomalies", "schema", "transform", "settings"].map(
    (tab) => `/messaging/topics/${TOPIC}/${tab}`,
  ),
  "/messaging/groups",
  "/messaging/dead",
  "/messaging/events",
  "/messaging/query?sql=select+*+from+topics",
  "/messaging/connections",
  "/tunnels",
];

/** Screens of mail. */
export const MAIL_SCREENS: readonly string[] = [
  "/mail/inbox",
  "/mail/messages",
  "/mail/templates",
  "/mail/templates/invoice-ready",
  "/mail/suppression",
  "/mail/inbound",
  "/mail/dmarc",
];

/** Asserts that the matrix has every section of the rail, so that a new one is not forgotten. */
export async function checkCovered(console: ConsolePage): Promise<void> {
  const screens = [...SERVICE_SCREENS, ...TRAFFIC_SCREENS, ...MAIL_SCREENS];
  const covered = new Set(screens.map((path) => path.replace(/\?.*/, "")));
  // Their texts are the console's own; offload shows none of others until a store is set.
  for (const path of ["/access", "/settings", "/messaging/offload"]) covered.add(path);
  const sections = await listSections(console);
  assert.ok(sections.length > 0);
  assert.deepEqual(
    sections.filter((path) => !covered.has(path)),
    [],
    "sections of the rail that the matrix lacks",
  );
}
