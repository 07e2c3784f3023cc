// The response cache: its use, the routes that store responses, invalidation by path prefix or tag.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { formatBytes, formatDuration, formatNumber } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, Segments, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { loadRoutes, nameOf, routePath, type Route } from "./routes.ts";

const EVERY_MS = 2_000;
const NEEDS = "gate:admin";

type CacheUse = Answer<"gate", "GET /admin/cache">;

/** A route that stores responses. */
type CachedRoute = Route & { cache_ttl_seconds: number; cache_methods?: string[] };

export function CachePage() {
  useCrumbs([{ label: t("Gateway") }, { label: t("Cache") }]);
  const [prefix, setPrefix] = useState<string | undefined>(undefined);
  const use = useLoad("cache", () => callService<CacheUse>("gate", "/admin/cache"), EVERY_MS);
  const routes = useLoad("cached routes", async () => (await loadRoutes()).filter(isCached));
  const invalidate = (): void => setPrefix("/");
  useCommands([{ label: t("Invalidate responses…"), icon: "trash", run: invalidate }]);
  return (
    <Split pane={<Loading of={use}>{(found) => <Use use={found} />}</Loading>}>
      <Title
        actions={
          <Action onClick={invalidate} needs={NEEDS}>
            {t("Invalidate responses…")}
          </Action>
        }
      >
        {t("Cache")}
      </Title>
      <Loading of={routes}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("No route stores responses")}>
              <p>{t("Set cache_ttl_seconds on a route to store the responses of its target.")}</p>
            </Empty>
          ) : (
            <CachedRoutes routes={list} onInvalidate={(route) => setPrefix(route.prefix)} />
          )
        }
      </Loading>
      {prefix !== undefined && (
        <InvalidateDialog
          prefix={prefix}
          onClose={() => setPrefix(undefined)}
          onDone={() => void use.reload()}
        />
      )}
    </Split>
  );
}

function isCached(route: Route): route is CachedRoute {
  const { cache_ttl_seconds: ttl } = route;
  return typeof ttl === "number" && ttl > 0;
}

function CachedRoutes(props: {
  routes: readonly CachedRoute[];
  onInvalidate: (route: CachedRoute) => void;
}) {
  return (
    <Table
      label={t("Routes that store responses")}
      rows={props.routes}
      idOf={nameOf}
      onSelect={(route) => navigate(routePath(route))}
      columns={[
        {
          title: t("Route"),
          render: (route) => (
            <a class="mono" href={href(routePath(route))}>
              <span class="i3">{route.host}</span>
              {route.prefix}
            </a>
          ),
        },
        {
          title: t("Kept for"),
          kind: "w-s wide-only",
          isNumber: true,
          render: ({ cache_ttl_seconds: seconds }) => formatDuration(seconds * 1_000),
        },
        {
          title: t("Methods"),
          kind: "w-m mono wide-only",
          render: ({ cache_methods: methods = ["GET", "HEAD"] }) => methods.join(", "),
        },
        {
          title: t("Actions"),
          kind: "w-m",
          render: (route) => (
            <Action onClick={() => props.onInvalidate(route)} needs={NEEDS}>
              {t("Invalidate…")}
            </Action>
          ),
        },
      ]}
    />
  );
}

function Use({ use }: { use: CacheUse }) {
  const { lookups_total: lookups, hits_total: hits } = use;
  return (
    <Section title={t("Use")} note={t("since the gateway started")}>
      <Facts>
        <FactRow term={t("Stored responses")}>{formatNumber(use.entries)}</FactRow>
        <FactRow term={t("Memory in use")}>
          {t("{n} of {all}", { n: formatBytes(use.bytes), all: formatBytes(use.bytes_max) })}
        </FactRow>
        <FactRow term={t("Largest response")}>{formatBytes(use.entry_bytes_max)}</FactRow>
        <FactRow term={t("From the cache")}>
          {lookups === 0
            ? "–"
            : t("{n} of {all}", { n: formatNumber(hits), all: formatNumber(lookups) })}
        </FactRow>
        <FactRow term={t("Dropped for space")}>{formatNumber(use.evicted_total)}</FactRow>
      </Facts>
    </Section>
  );
}

function InvalidateDialog(props: { prefix: string; onClose: () => void; onDone: () => void }) {
  const [by, setBy] = useState<"prefix" | "tag">("prefix");
  const [prefix, setPrefix] = useState(props.prefix);
  const [tag, setTag] = useState("");
  return (
    <FormDialog
      title={t("Invalidate responses")}
      submit={t("Invalidate")}
      isDestructive
      onClose={props.onClose}
      onSubmit={async () => {
        const path = withQuery("/admin/cache", by === "prefix" ? { prefix } : { tag });
        const { entries_invalidated: count } = await callService<
          Answer<"gate", "DELETE /admin/cache">
        >("gate", path, { method: "DELETE" });
        say(t("Invalidated responses: {n}", { n: formatNumber(count) }));
        props.onDone();
      }}
    >
      <p>{t("Requests go to the target again. Responses that are being received are included.")}</p>
      <Segments
        label={t("By")}
        value={by}
        options={[
          ["prefix", t("Path prefix")],
          ["tag", "Cache-Tag"],
        ]}
        onChange={setBy}
      />
      {by === "prefix" ? (
        <TextField label={t("Path prefix")} value={prefix} onInput={setPrefix} required />
      ) : (
        <TextField label="Cache-Tag" value={tag} onInput={setTag} required />
      )}
    </FormDialog>
  );
}
