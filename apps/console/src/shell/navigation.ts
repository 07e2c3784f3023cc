// The map: services, their sections, and the module that contains each page.
import type { ServiceId } from "@platform/console/contract";
import { t } from "../words/words.ts";

/** A section of a service in the rail. */
interface Section {
  /** Path below `/ui`. */
  to: string;
  label: string;
  /** Part of the API without which the section is hidden. */
  feature?: string;
}

/** A service in the rail. */
export interface Area {
  id: ServiceId;
  /** Name of its module, if it is not that of the service. */
  page?: "projects";
  label: string;
  /** First part of its paths. */
  root: string;
  /** Key after `g`. */
  key: string;
  sections: readonly Section[];
}

/** All services in the order of the rail. */
export function listAreas(): readonly Area[] {
  return [
    {
      id: "runtime",
      page: "projects",
      label: t("Projects"),
      root: "/projects",
      key: "w",
      sections: [{ to: "/projects", label: t("Projects"), feature: "projects" }],
    },
    {
      id: "gate",
      label: t("Gateway"),
      root: "/gateway",
      key: "g",
      sections: [
        { to: "/gateway/routes", label: t("Routes") },
        { to: "/gateway/upstreams", label: t("Upstreams") },
        { to: "/gateway/certificates", label: t("Certificates") },
        { to: "/gateway/models", label: t("Models"), feature: "models" },
        { to: "/gateway/cache", label: t("Cache"), feature: "cache" },
        { to: "/gateway/keys", label: t("API keys") },
        { to: "/gateway/log", label: t("Log") },
      ],
    },
    {
      id: "auth",
      label: t("Identity"),
      root: "/identity",
      key: "i",
      sections: [
        { to: "/identity/users", label: t("Users") },
        { to: "/identity/groups", label: t("Groups") },
        { to: "/identity/roles", label: t("Roles") },
        { to: "/identity/clients", label: t("Clients") },
        { to: "/identity/sessions", label: t("Sessions") },
        { to: "/identity/keys", label: t("Keys") },
        { to: "/identity/audit", label: t("Audit") },
      ],
    },
    {
      id: "vault",
      label: t("Storage"),
      root: "/storage",
      key: "s",
      sections: [
        { to: "/storage/buckets", label: t("Buckets") },
        { to: "/storage/users", label: t("Users and keys") },
        { to: "/storage/events", label: t("Events") },
        { to: "/storage/drives", label: t("Drives") },
        { to: "/storage/jobs", label: t("Jobs") },
        { to: "/storage/encryption", label: t("Encryption keys") },
        { to: "/storage/remotes", label: t("Remotes") },
      ],
    },
    describeMessaging(),
    {
      id: "notify",
      label: t("Mail"),
      root: "/mail",
      key: "e",
      sections: [
        { to: "/mail/inbox", label: t("Inbox"), feature: "inbox" },
        { to: "/mail/messages", label: t("Messages") },
        { to: "/mail/templates", label: t("Templates") },
        { to: "/mail/suppression", label: t("Suppression") },
        { to: "/mail/inbound", label: t("Inbound rules"), feature: "inbound" },
        { to: "/mail/dmarc", label: t("DMARC"), feature: "dmarc" },
      ],
    },
    {
      id: "tunnel",
      label: t("Tunnels"),
      root: "/tunnels",
      key: "t",
      sections: [{ to: "/tunnels", label: t("Tunnels") }],
    },
    {
      id: "runtime",
      label: t("Runtime"),
      root: "/runtime",
      key: "r",
      sections: [
        { to: "/runtime/services", label: t("Services") },
        { to: "/runtime/schedules", label: t("Schedules") },
        { to: "/runtime/logs", label: t("Logs") },
      ],
    },
  ];
}

function describeMessaging(): Area {
  return {
    id: "pulse",
    label: t("Messaging"),
    root: "/messaging",
    key: "m",
    sections: [
      { to: "/messaging/topics", label: t("Topics") },
      { to: "/messaging/groups", label: t("Groups") },
      { to: "/messaging/dead", label: t("Dead letters") },
      { to: "/messaging/events", label: t("Events"), feature: "events" },
      { to: "/messaging/query", label: t("Query"), feature: "query" },
      { to: "/messaging/offload", label: t("Offload"), feature: "offload" },
      { to: "/messaging/connections", label: t("Connections"), feature: "connections" },
    ],
  };
}

/** The service of a path. */
export function findArea(path: string): Area | undefined {
  return listAreas().find(({ root }) => path === root || path.startsWith(`${root}/`));
}
