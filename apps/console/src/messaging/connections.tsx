// The open connections of clients, by protocol.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { formatAgo, formatMoment, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Segments } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";

const EVERY_MS = 3_000;
const PAGE = 100;
const PROTOCOLS = ["all", "http", "kafka", "mqtt", "stomp"] as const;

type Connection = Answer<"pulse", "GET /connections">["connections"][number];

export function ConnectionsPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Connections") }]);
  const protocol = PROTOCOLS.find((one) => one === queryValue("protocol")) ?? "all";
  const cursor = queryValue("cursor");
  const loaded = useLoad(
    `connections ${protocol} ${cursor}`,
    () =>
      callBroker<Answer<"pulse", "GET /connections">>(
        withQuery("/connections", {
          protocol: protocol === "all" ? undefined : protocol,
          limit: PAGE,
          cursor,
        }),
      ),
    EVERY_MS,
  );
  return (
    <Split>
      <Title
        actions={
          <Segments
            label={t("Protocol")}
            value={protocol}
            options={PROTOCOLS.map((one) => [one, one === "all" ? t("All") : one] as const)}
            onChange={(value) =>
              setQuery({ protocol: value === "all" ? undefined : value, cursor: undefined })
            }
          />
        }
      >
        {t("Connections")}
      </Title>
      <Loading of={loaded}>
        {({ connections, next_cursor: next }) => (
          <>
            {connections.length === 0 ? (
              <Empty title={t("No open connections")} />
            ) : (
              <ConnectionTable connections={connections} />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
    </Split>
  );
}

function ConnectionTable({ connections }: { connections: readonly Connection[] }) {
  return (
    <Table
      label={t("Connections")}
      rows={connections}
      isTall
      idOf={({ id }) => id}
      columns={[
        {
          title: t("Client"),
          render: ({ user, client_id: client, address }) => (
            <span class="two">
              <b class="mono">{client ?? user ?? t("not signed in")}</b>
              <small class="mono">{user === null ? address : `${user} · ${address}`}</small>
            </span>
          ),
        },
        {
          title: t("Protocol"),
          kind: "w-m mono",
          render: (one) => `${one.protocol} ${one.transport}`,
        },
        {
          title: t("Topics"),
          kind: "mono wide-only",
          render: ({ subscriptions, subscription_count: count }) => (
            <span class="i2">
              {subscriptions.join(", ")}
              {count > subscriptions.length &&
                ` ${t("and {n} more", { n: formatNumber(count - subscriptions.length) })}`}
            </span>
          ),
        },
        {
          title: t("Since"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ since }) => <span title={formatMoment(since)}>{formatAgo(since)}</span>,
        },
      ]}
    />
  );
}
