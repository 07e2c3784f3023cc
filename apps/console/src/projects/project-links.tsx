// Links to the parts of a project in the other services, with how much there is of each.
import type { ServiceId } from "@platform/console/contract";
import { segment, withQuery } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatBytes, formatNumber } from "../format/format.ts";
import { href } from "../router/router.ts";
import { callService, services } from "../session/session.ts";
import { Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { t } from "../words/words.ts";
import { apiPath, environmentPath } from "./paths.ts";

const REFRESH_MS = 10_000;

/** Figures of a project by the link that they stand at; those of services that do not run, or may not be read, are missing. */
type Figures = Readonly<Record<"routes" | "schedules" | "topics" | "bucket", string | undefined>>;

/** A figure of a service. It is left out if the service does not answer: its own page says why. */
async function ask(id: ServiceId, read: () => Promise<string>): Promise<string | undefined> {
  if (!services.value.some((service) => service.id === id)) return undefined;
  return read().catch(() => undefined);
}

async function loadFigures(name: string): Promise<Figures> {
  const [routes, schedules, topics, bucket] = await Promise.all([
    ask("gate", async () => {
      const all = await callService<Answer<"gate", "GET /routes">>("gate", "/routes");
      return formatNumber(all.filter(({ host }) => host?.startsWith(`${name}.`) === true).length);
    }),
    ask("runtime", async () => {
      const path = "/schedules";
      const { items } = await callService<Answer<"runtime", "GET /schedules">>("runtime", path);
      return formatNumber(items.filter(({ service }) => service === name).length);
    }),
    ask("pulse", async () => {
      const found = await callService<Answer<"pulse", "GET /topics">>("pulse", "/topics");
      const own = found.topics.filter(
        (topic) => topic.name === name || topic.name.startsWith(`${name}.`),
      );
      return formatNumber(own.length);
    }),
    ask("vault", async () => {
      const path = withQuery("/buckets", { detail: "true" });
      const found = await callService<Answer<"vault", "GET /buckets">>("vault", path);
      const items = Array.isArray(found) ? [] : found.items;
      const own = items.find((one) => one.name === `app-${name}`);
      if (own === undefined) return t("none");
      return t("{n} objects, {size}", {
        n: formatNumber(own.objects),
        size: formatBytes(own.bytes),
      });
    }),
  ]);
  return { routes, schedules, topics, bucket };
}

/** The id of the project's application, which is the sender of its mail; undefined for those who may not see applications. */
async function findClient(name: string): Promise<string | undefined> {
  const path = withQuery("/applications", { limit: 100 });
  const read = callService<Answer<"runtime", "GET /applications">>("runtime", path);
  const items = await read.then((answer) => answer.items).catch(() => []);
  return items.find((one) => one.name === name)?.client_id;
}

/** Links to the pages of a project's parts. */
export function ProjectLinks({ name }: { name: string }) {
  const figures = useLoad(`figures ${name}`, async () => loadFigures(name), REFRESH_MS).data.value;
  const client = useLoad(`client ${name}`, async () => findClient(name)).data.value;
  const links: [to: string, label: string, figure?: string | undefined][] = [
    [apiPath(name), t("API of the project")],
    [environmentPath(name), t("Environment")],
    [`/runtime/logs?service=${segment(name)}`, t("Log")],
    [`/runtime/logs?service=${segment(name)}&level=error`, t("Errors in the log")],
    [`/runtime/schedules?service=${segment(name)}`, t("Schedules"), figures?.schedules],
    [`/gateway/routes?filter=${segment(name)}.`, t("Routes"), figures?.routes],
    [`/storage/buckets/app-${segment(name)}`, t("Bucket"), figures?.bucket],
    [`/messaging/topics?filter=${segment(name)}`, t("Topics"), figures?.topics],
    [
      client === undefined ? "/mail/messages" : `/mail/messages?client=${segment(client)}`,
      t("Sent mail"),
    ],
    [`/access/applications?sel=${segment(name)}`, t("Application")],
  ];
  return (
    <Section title={t("Also of this project")}>
      <ul class="plain-list">
        {links.map(([to, label, figure]) => (
          <li key={to}>
            <a class="link" href={href(to)}>
              {label}
            </a>
            {figure !== undefined && <span class="i2">{` ${figure}`}</span>}
          </li>
        ))}
      </ul>
    </Section>
  );
}
