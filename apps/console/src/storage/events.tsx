// Subscriptions of all buckets: where events go, and what became of the last ones.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import {
  formatAgo,
  formatDuration,
  formatMoment,
  formatNumber,
  formatTime,
} from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt, runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { settingsHref } from "./setting.ts";

const EVERY_MS = 3_000;
const PAGE = 100;

type Try = Subscription["tries"][number];

type Subscription = Page["items"][number];

type TestResult = Answer<"vault", "POST /events/test">;

type Page = Answer<"vault", "GET /events/deliveries">;

export function EventsPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Events") }]);
  const cursor = queryValue("cursor");
  const loaded = useLoad(
    cursor,
    () => {
      const query = { limit: PAGE, cursor: cursor === "" ? undefined : cursor };
      return callService<Page>("vault", withQuery("/events/deliveries", query));
    },
    EVERY_MS,
  );
  const chosen = loaded.data.value?.items.find((one) => identify(one) === queryValue("sel"));
  return (
    <Split
      pane={
        chosen === undefined ? undefined : (
          <SubscriptionPane
            key={identify(chosen)}
            subscription={chosen}
            onDeleted={() => void loaded.reload()}
          />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title>{t("Events")}</Title>
      <Loading of={loaded}>
        {({ items, next_cursor: next }) =>
          items.length === 0 ? (
            <Empty title={t("No bucket sends events yet")}>
              <p>
                {t(
                  "A subscription tells a webhook or a topic about new and deleted objects. It is added in the settings of a bucket, under Events.",
                )}
              </p>
              <a class="btn" href={href("/storage/buckets")}>
                {t("Buckets")}
              </a>
            </Empty>
          ) : (
            <>
              <Table
                label={t("Subscriptions")}
                rows={items}
                isTall
                idOf={identify}
                selected={queryValue("sel")}
                onSelect={(one) => setQuery({ sel: identify(one) })}
                columns={[
                  {
                    title: t("Target"),
                    render: (one) => (
                      <span class="two">
                        <b class="mono" title={targetOf(one)}>
                          {targetOf(one)}
                        </b>
                        <small>
                          {one.bucket} · {one.id}
                        </small>
                      </span>
                    ),
                  },
                  {
                    title: t("Last try"),
                    kind: "w-l",
                    render: (one) => <LastTry tried={one.tries[0]} />,
                  },
                  {
                    title: t("Waiting"),
                    kind: "w-s wide-only",
                    isNumber: true,
                    sort: ({ waiting }) => waiting,
                    render: formatWaiting,
                  },
                  {
                    title: t("Delivered"),
                    kind: "w-s wide-only",
                    isNumber: true,
                    sort: ({ delivered }) => delivered,
                    render: ({ delivered }) => formatNumber(delivered),
                  },
                ]}
              />
              <NextPage cursor={next} />
            </>
          )
        }
      </Loading>
    </Split>
  );
}

function identify({ bucket, id }: Subscription): string {
  return `${bucket}/${id}`;
}

function targetOf({ webhook, stomp }: Subscription): string {
  return webhook ?? `${stomp?.url ?? ""} ${stomp?.destination ?? ""}`;
}

function formatWaiting({ waiting, has_more: hasMore }: Subscription): string {
  return hasMore ? t("more than {n}", { n: formatNumber(waiting) }) : formatNumber(waiting);
}

const OUTCOMES: Readonly<Record<Try["outcome"], StateKind>> = {
  delivered: "ok",
  failed: "warn",
  abandoned: "bad",
};

function describeOutcome(outcome: Try["outcome"]): string {
  if (outcome === "delivered") return t("delivered");
  return outcome === "failed" ? t("failed, is sent again") : t("abandoned");
}

function LastTry({ tried }: { tried: Try | undefined }) {
  if (tried === undefined) return <State kind="off">{t("not yet")}</State>;
  return (
    <State kind={OUTCOMES[tried.outcome]}>
      {describeOutcome(tried.outcome)}, {formatAgo(tried.ended_at)}
    </State>
  );
}

function SubscriptionPane(props: { subscription: Subscription; onDeleted: () => void }) {
  const { subscription: one, onDeleted } = props;
  const { prefix, suffix } = one.filter;
  const [tested, setTested] = useState<TestResult | "running" | undefined>(undefined);
  const test = (): void => {
    setTested("running");
    void attempt(async () => {
      const json = { bucket: one.bucket, id: one.id };
      setTested(await callService<TestResult>("vault", "/events/test", { method: "POST", json }));
    }).then((isDone) => {
      if (!isDone) setTested(undefined);
    });
  };
  const remove = (): void => {
    runUnlessUndone({
      key: `subscription ${identify(one)}`,
      text: t("Deleting {name}", { name: one.id }),
      run: async () => {
        const query = { bucket: one.bucket, id: one.id };
        await callService("vault", withQuery("/events/subscriptions", query), { method: "DELETE" });
        if (queryValue("sel") === identify(one)) setQuery({ sel: undefined }, { replace: true });
        onDeleted();
      },
    });
  };
  useCommands([
    { label: t("Send a test"), icon: "play", run: test },
    { label: t("Delete the subscription"), icon: "trash", run: remove },
  ]);
  return (
    <>
      <Section title={one.id} note={t("since the start of the service")}>
        <Facts>
          <FactRow term={t("Target")} isMono>
            <span class="wrap">{targetOf(one)}</span>
            <CopyButton text={targetOf(one)} label={t("Copy the address")} />
          </FactRow>
          <FactRow term={t("Bucket")} isMono>
            <a href={href(settingsHref(one.bucket, "events"))}>{one.bucket}</a>
          </FactRow>
          <FactRow term={t("Events")} isMono>
            <span class="wrap">{one.events.join(", ")}</span>
          </FactRow>
          {prefix !== undefined && (
            <FactRow term={t("Key begins with")} isMono>
              <span class="wrap">{prefix}</span>
            </FactRow>
          )}
          {suffix !== undefined && (
            <FactRow term={t("Key ends with")} isMono>
              <span class="wrap">{suffix}</span>
            </FactRow>
          )}
          <FactRow term={t("Waiting")} isMono>
            {formatWaiting(one)}
          </FactRow>
          <FactRow term={t("Delivered")} isMono>
            {formatNumber(one.delivered)}
          </FactRow>
          <FactRow term={t("Failed attempts")} isMono>
            {formatNumber(one.failed)}
          </FactRow>
          <FactRow term={t("Abandoned")} isMono>
            {formatNumber(one.abandoned)}
          </FactRow>
        </Facts>
        <p class="acts">
          <Action
            onClick={test}
            icon="play"
            blocked={tested === "running" ? t("It is running") : undefined}
          >
            {t("Send a test")}
          </Action>
          <Action onClick={remove} kind="bad" icon="trash">
            {t("Delete")}
          </Action>
        </p>
        {tested !== undefined && <Tested tested={tested} />}
      </Section>
      <Section title={t("Last tries")}>
        {one.tries.length === 0 && <p class="i2">{t("No event has been sent yet.")}</p>}
        <ol class="tries">
          {one.tries.map((tried) => (
            <TryLine key={`${tried.ended_at} ${tried.key} ${tried.attempt}`} tried={tried} />
          ))}
        </ol>
      </Section>
    </>
  );
}

function Tested({ tested }: { tested: TestResult | "running" }) {
  if (tested === "running") {
    return (
      <p role="status" class="tested">
        {t("The test is being sent …")}
      </p>
    );
  }
  const { outcome, status, reason, duration_ms: durationMs } = tested;
  const details = [
    status === undefined ? "" : t("status {n}", { n: status }),
    formatDuration(durationMs),
  ];
  return (
    <div role="status" class="tested">
      <State kind={outcome === "delivered" ? "ok" : "bad"}>
        {outcome === "delivered" ? t("The target accepts events") : t("The test was not delivered")}
      </State>
      <small>{details.filter((text) => text !== "").join(" · ")}</small>
      {reason !== undefined && <small class="wrap">{reason}</small>}
    </div>
  );
}

function TryLine({ tried }: { tried: Try }) {
  return (
    <li>
      <State kind={OUTCOMES[tried.outcome]}>{describeOutcome(tried.outcome)}</State>
      <span class="wrap mono">{tried.key}</span>
      <small title={formatMoment(tried.ended_at)}>
        {tried.event.replace(/^objstore:/, "")} · {t("attempt {n}", { n: tried.attempt })} ·{" "}
        {formatAgo(tried.ended_at)} · {formatDuration(tried.duration_ms)}
      </small>
      {tried.reason !== undefined && <small class="wrap">{tried.reason}</small>}
      {tried.reason === undefined && tried.status !== undefined && (
        <small>{t("status {n}", { n: tried.status })}</small>
      )}
      {tried.next_at !== undefined && Date.parse(tried.next_at) > Date.now() && (
        <small title={formatMoment(tried.next_at)}>
          {t("next attempt at {time}", { time: formatTime(tried.next_at) })}
        </small>
      )}
    </li>
  );
}
