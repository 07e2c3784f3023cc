// The services of this machine: their states, and restart, stop and start.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatAgo, formatMoment, formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { LogLink, ScheduleTable, useSchedules } from "./schedules.tsx";

const REFRESH_MS = 2_000;
const PERMISSION = "runtime:manage";

/** A service, as the runtime describes it. */
type Service = Answer<"runtime", "GET /services">["items"][number];
type Operation = "restart" | "stop" | "start";

const KINDS: Readonly<Record<Service["state"], StateKind>> = {
  up: "ok",
  degraded: "warn",
  starting: "warn",
  restarting: "bad",
  stopping: "warn",
  stopped: "off",
};

export function ServicesPage() {
  useCrumbs([{ label: t("Runtime") }, { label: t("Services") }]);
  const [stopped, setStopped] = useState<Service | undefined>(undefined);
  const loaded = useLoad("services", listServices, REFRESH_MS);
  const selected = queryValue("service");
  const service = loaded.data.value?.find(({ id }) => id === selected);
  const operate = async (id: string, operation: Operation): Promise<void> => {
    await callService("runtime", `/services/${segment(id)}/${operation}`, {
      method: "POST",
      json: {},
    });
    await loaded.reload();
  };
  return (
    <Split
      pane={service === undefined ? undefined : <ServicePane service={service} />}
      onClosePane={() => setQuery({ service: undefined })}
    >
      <h1 class="hidden">{t("Services")}</h1>
      <Loading of={loaded}>
        {(services) => (
          <Table
            label={t("Services")}
            rows={services}
            idOf={({ id }) => id}
            selected={selected}
            onSelect={({ id }) => setQuery({ service: id })}
            isTall
            columns={[
              {
                title: t("Service"),
                render: ({ label, kind, url }) => (
                  <span class="two">
                    <b>{label}</b>
                    <small class="mono">{kind === "project" ? t("project") : url}</small>
                  </span>
                ),
              },
              {
                title: t("State"),
                kind: "w-m",
                render: ({ state }) => <State kind={KINDS[state]}>{describeState(state)}</State>,
              },
              {
                title: t("Since"),
                kind: "w-s wide-only",
                isNumber: true,
                render: ({ started_at: at }) =>
                  at === null ? "–" : <span title={formatMoment(at)}>{formatAgo(at)}</span>,
              },
              {
                title: t("Restarts"),
                kind: "w-s wide-only",
                isNumber: true,
                render: ({ restarts }) => (
                  <span class={restarts > 0 ? "bad" : ""}>{formatNumber(restarts)}</span>
                ),
              },
              {
                title: t("Actions"),
                kind: "w-xl num",
                render: (one) => (
                  <Actions
                    service={one}
                    onRun={(operation) => void attempt(() => operate(one.id, operation))}
                    onStop={() => setStopped(one)}
                  />
                ),
              },
            ]}
          />
        )}
      </Loading>
      <Jobs />
      {stopped !== undefined && (
        <FormDialog
          title={t("Stop {name}", { name: stopped.label })}
          submit={t("Stop")}
          isDestructive
          onClose={() => setStopped(undefined)}
          onSubmit={() => operate(stopped.id, "stop")}
        >
          <p>{t("It finishes its requests, and stays stopped until it is started.")}</p>
          {stopped.id === "gate" && (
            <p class="bad">
              {t(
                "The console runs in the gateway: this page will be gone. platform up starts it again.",
              )}
            </p>
          )}
        </FormDialog>
      )}
    </Split>
  );
}

async function listServices(): Promise<Service[]> {
  const { items } = await callService<Answer<"runtime", "GET /services">>("runtime", "/services");
  return items.map((one) => ({
    ...one,
    label: `${one.label.charAt(0).toUpperCase()}${one.label.slice(1)}`,
  }));
}

/** The schedules of projects, if there are any. */
function Jobs() {
  const loaded = useSchedules();
  const schedules = loaded.data.value ?? [];
  if (schedules.length === 0) return null;
  return (
    <Section title={t("Schedules")} note={schedules.length}>
      <ScheduleTable
        schedules={schedules}
        selected=""
        onSelect={({ id }) => navigate(`/runtime/schedules?schedule=${encodeURIComponent(id)}`)}
        onRun={() => void loaded.reload()}
      />
    </Section>
  );
}

function Actions(props: {
  service: Service;
  onRun: (operation: Operation) => void;
  onStop: () => void;
}) {
  const { state } = props.service;
  if (state === "stopped") {
    return (
      <span class="acts">
        <LogLink service={props.service.id} />
        <Action onClick={() => props.onRun("start")} needs={PERMISSION} icon="play">
          {t("Start")}
        </Action>
      </span>
    );
  }
  const blocked = state === "stopping" ? t("It is stopping") : undefined;
  return (
    <span class="acts">
      <LogLink service={props.service.id} />
      <Action
        onClick={() => props.onRun("restart")}
        needs={PERMISSION}
        blocked={blocked}
        icon="again"
      >
        {t("Restart")}
      </Action>
      <Action onClick={props.onStop} needs={PERMISSION} blocked={blocked}>
        {t("Stop…")}
      </Action>
    </span>
  );
}

function ServicePane({ service }: { service: Service }) {
  return (
    <>
      <Section
        title={service.label}
        action={<a href={href(`/runtime/logs?service=${service.id}`)}>{t("Log")}</a>}
      >
        <Facts>
          <FactRow term={t("State")}>
            <State kind={KINDS[service.state]}>{describeState(service.state)}</State>
          </FactRow>
          {service.detail !== "" && <FactRow term={t("Reason")}>{service.detail}</FactRow>}
          <FactRow term={t("Process")} isMono>
            {service.pid ?? "–"}
          </FactRow>
          <FactRow term={t("Started")}>{formatMoment(service.started_at)}</FactRow>
          <FactRow term={t("Restarts")} isMono>
            {formatNumber(service.restarts)}
          </FactRow>
          {service.last_failure !== null && (
            <FactRow term={t("Last failure")}>{service.last_failure}</FactRow>
          )}
        </Facts>
      </Section>
      <Section title={t("Addresses")}>
        <Facts>
          {service.listeners.map(({ name, host, port }) => (
            <FactRow key={name} term={name} isMono>
              {host.includes(":") ? `[${host}]` : host}:{port}
            </FactRow>
          ))}
        </Facts>
      </Section>
    </>
  );
}

function describeState(state: Service["state"]): string {
  const words: Record<Service["state"], string> = {
    up: t("Running"),
    degraded: t("Not ready"),
    starting: t("Starting"),
    restarting: t("Failed, restarting"),
    stopping: t("Stopping"),
    stopped: t("Stopped"),
  };
  return words[state];
}
