// Entries of the palette: commands of the page, places, names that the services know, and commands of other pages.
import type { ServiceId } from "@platform/console/contract";
import { ADD_APPLICATION } from "../access/permission.ts";
import { CHANGE, NEW_ROUTE, nameOf, routePath, type Route } from "../gateway/routes.ts";
import { MANAGE } from "../mail/message.ts";
import { hasTenants } from "../messaging/broker.ts";
import { topicPath } from "../messaging/paths.ts";
import { labelOfRun, RUN } from "../runtime/run-schedule.ts";
import { hasSteps } from "../overview/arrivals.ts";
import { projectPath } from "../projects/paths.ts";
import { callService, hasFeature, may } from "../session/session.ts";
import { commands } from "../stage/stage.ts";
import { ADMINISTER } from "../storage/permission.ts";
import type { IconName } from "../view/icon.tsx";
import { t } from "../words/words.ts";
import { availableAreas } from "./rail.tsx";

const START_ICON: IconName = "play";
const SHOWN_MAX = 8;
const NAMES_MAX = 500;

/** An entry of the palette. */
export interface Choice {
  group: string;
  label: string;
  note?: string;
  icon: IconName;
  isName?: boolean;
  key?: string;
  /** Path below `/ui`. */
  to?: string;
  /** Label of a command of that page, which runs when the page shows it. */
  command?: string;
  run?: () => void;
  isBlocked?: boolean;
}

type Name = Omit<Choice, "group" | "icon" | "isName">;

/** Entries that match a text: commands of this page, places and names, and commands of other pages. */
export function search(text: string, names: readonly Choice[]): Choice[] {
  const here = commands.value.map((command): Choice => {
    const isBlocked = command.needs !== undefined && !may(command.needs);
    return {
      group: t("Here"),
      label: command.label,
      icon: (command.icon ?? "next") as IconName,
      run: command.run,
      isBlocked,
      ...(command.key === undefined ? {} : { key: command.key }),
      ...(isBlocked ? { note: t("Requires the permission {name}", { name: command.needs! }) } : {}),
    };
  });
  const places: Choice[] = [
    { group: t("Go to"), label: t("Overview"), icon: "overview", to: "/" },
    ...(hasSteps()
      ? [{ group: t("Go to"), label: t("First steps"), icon: START_ICON, to: "/start" }]
      : []),
    ...availableAreas().flatMap((area) =>
      area.sections.map((section) => ({
        group: t("Go to"),
        label: section.label === area.label ? area.label : `${area.label} · ${section.label}`,
        icon: area.page ?? area.id,
        to: section.to,
      })),
    ),
    { group: t("Go to"), label: t("Access"), icon: "access", to: "/access" },
    ...(hasFeature("runtime", "applications")
      ? [
          {
            group: t("Go to"),
            label: t("Applications"),
            icon: "access" as const,
            to: "/access/applications",
          },
        ]
      : []),
    { group: t("Go to"), label: t("Settings"), icon: "settings", to: "/settings" },
  ];
  const wanted = text.trim().toLowerCase();
  const matches = ({ label }: Choice): boolean => label.toLowerCase().includes(wanted);
  const shown = (list: readonly Choice[]): Choice[] => list.filter(matches).slice(0, SHOWN_MAX);
  const isHere = new Set(here.map(({ label }) => label));
  const actions = listActions().filter(({ label }) => !isHere.has(label));
  const isAction = ({ command }: Choice): boolean => command !== undefined;
  return [
    ...shown(here),
    ...(wanted === "" ? [] : shown(names.filter((name) => !isAction(name)))),
    ...(wanted === "" ? places : shown(places)),
    ...(wanted === "" ? actions : shown([...actions, ...names.filter(isAction)])),
  ];
}

/** Commands of other pages that the user may run, on services of this console. */
function listActions(): Choice[] {
  const area = new Set(availableAreas().flatMap(({ sections }) => sections.map(({ to }) => to)));
  if (hasFeature("runtime", "applications")) area.add("/access/applications");
  const all: [to: string, command: string, icon: ServiceId, needs?: string][] = [
    [NEW_ROUTE, t("New route"), "gate", CHANGE],
    ["/gateway/keys", t("New API key"), "gate", CHANGE],
    ["/access/applications", t("Add application"), "runtime", ADD_APPLICATION],
    ["/identity/users", t("Invite a person"), "auth", "users:write"],
    ["/identity/users", t("New user"), "auth", "users:write"],
    ["/identity/groups", t("New group"), "auth", "users:write"],
    ["/identity/clients", t("New client"), "auth", "clients:write"],
    ["/identity/roles", t("New role"), "auth", "rbac:write"],
    ["/storage/buckets", t("New bucket…"), "vault"],
    ["/storage/users", t("New S3 key"), "vault", ADMINISTER],
    ["/storage/users", t("New storage user"), "vault", ADMINISTER],
    ["/messaging/topics", t("New topic"), "pulse"],
    ["/mail/templates", t("New template"), "notify", MANAGE],
    ["/mail/suppression", t("Suppress an address"), "notify", MANAGE],
    ["/mail/inbound", t("New inbound rule"), "notify", MANAGE],
  ];
  return all
    .filter(([to, , , needs]) => {
      const isThere = to === NEW_ROUTE ? area.has("/gateway/routes") : area.has(to);
      return isThere && (needs === undefined || may(needs));
    })
    .map(([to, command, icon]) => ({ group: t("Do"), label: command, icon, to, command }));
}

/** Names of topics, routes, buckets, users, schedules and projects; services that refuse or are down contribute none. */
export async function loadNames(): Promise<Choice[]> {
  const available = new Set(availableAreas().map(({ id }) => id));
  const read = async (
    id: ServiceId,
    path: string,
    list: (answer: never) => Name[],
  ): Promise<Choice[]> => {
    if (!available.has(id)) return [];
    const answer = await callService<never>(id, path).catch(() => undefined);
    if (answer === undefined) return [];
    return list(answer)
      .slice(0, NAMES_MAX)
      .map((choice) => ({
        ...choice,
        icon: id,
        ...(choice.command === undefined
          ? { group: t("Go to"), isName: true }
          : { group: t("Do") }),
      }));
  };
  const lists = await Promise.all([
    read(
      "pulse",
      may("pulse:admin") ? "/topics?tenant=*" : "/topics",
      ({ topics }: { topics: { name: string; tenant?: string }[] }) => {
        const isShared = hasTenants(topics.map(({ tenant = "" }) => tenant));
        return topics.flatMap(({ name, tenant }) => {
          const note = isShared && tenant ? t("topic of {tenant}", { tenant }) : t("topic");
          const to = topicPath(name, "tail", isShared ? tenant : undefined);
          const publish = t("Publish to {name}", { name });
          return [
            { label: name, note, to },
            { label: publish, command: publish, note, to },
          ];
        });
      },
    ),
    read("gate", "/routes", (answer: Route[]) =>
      answer.map((route) => ({ label: nameOf(route), note: t("route"), to: routePath(route) })),
    ),
    read("vault", "/usage?limit=200", (answer: { items: { bucket: string }[] }) =>
      answer.items.map(({ bucket }) => ({
        label: bucket,
        note: t("bucket"),
        to: `/storage/buckets/${encodeURIComponent(bucket)}`,
      })),
    ),
    read("auth", "/users?limit=100", (answer: { users: { id: string; username: string }[] }) =>
      answer.users.map(({ id, username }) => ({
        label: username,
        note: t("user"),
        to: `/identity/users?sel=${encodeURIComponent(id)}`,
      })),
    ),
    may(RUN) ? read("runtime", "/schedules", listRuns) : [],
    hasFeature("runtime", "projects") ? read("runtime", "/projects", listProjects) : [],
  ]);
  return lists.flat();
}

function listProjects({ items }: { items: { name: string }[] }): Name[] {
  return items.map(({ name }) => ({ label: name, note: t("project"), to: projectPath(name) }));
}

function listRuns({ items }: { items: { service: string; name: string }[] }): Name[] {
  return items.map((schedule) => {
    const command = labelOfRun(schedule);
    return { label: command, command, note: schedule.service, to: "/runtime/schedules" };
  });
}
