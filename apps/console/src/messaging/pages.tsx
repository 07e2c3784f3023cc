// The pages of messaging.
import "./messaging.css";
import type { ComponentType } from "preact";
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { chosenTenant } from "./broker.ts";
import { ConnectionsPage } from "./connections.tsx";
import { DeadLettersPage } from "./dead-letters.tsx";
import { EventsPage } from "./events.tsx";
import { GroupsPage } from "./groups.tsx";
import { OffloadPage } from "./offload.tsx";
import { QueryPage } from "./query.tsx";
import { TopicPage } from "./topic.tsx";
import { TopicsPage } from "./topics.tsx";

const ROUTES: readonly [
  pattern: string,
  page: ComponentType<{ params: Record<string, string> }>,
][] = [
  ["/messaging/topics", TopicsPage],
  ["/messaging/topics/:topic", TopicPage],
  ["/messaging/topics/:topic/:tab", TopicPage],
  ["/messaging/groups", GroupsPage],
  ["/messaging/dead", DeadLettersPage],
  ["/messaging/events", EventsPage],
  ["/messaging/query", QueryPage],
  ["/messaging/offload", OffloadPage],
  ["/messaging/connections", ConnectionsPage],
];

/** The page of the current path. */
export default function MessagingPages() {
  useTrace({
    label: t("Messages in"),
    service: "pulse",
    figure: "published",
    errors: "dead_letters",
  });
  for (const [pattern, Page] of ROUTES) {
    const params = matchPath(pattern, path.value);
    if (params !== undefined) return <Page key={chosenTenant()} params={params} />;
  }
  return <TopicsPage />;
}
