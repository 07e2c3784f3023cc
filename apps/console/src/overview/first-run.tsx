// The start page of a new installation: steps to take, each ticked when it arrives. It stays at its own address.
import { useState } from "preact/hooks";
import { formatTime } from "../format/format.ts";
import { navigate } from "../router/router.ts";
import { areListenersKnown, useListeners } from "../session/listeners.ts";
import { describeServices, type ServiceLabel } from "../session/service-labels.ts";
import { services } from "../session/session.ts";
import { feeds } from "../live/live.ts";
import { useCrumbs, useTrace } from "../stage/stage.ts";
import { Action, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { toFailure } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Problem } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { t } from "../words/words.ts";
import { hasSteps, isSkipped, useArrivals, useFirstProject } from "./arrivals.ts";
import { listSteps, type Step } from "./first-steps.ts";

/** The page at its own address, which stays after the first run. */
export function StartPage() {
  useCrumbs([{ label: t("First steps") }]);
  useTrace(undefined);
  if (!hasSteps()) {
    return (
      <Empty title={t("Nothing to start here")}>
        <h1 class="hidden">{t("First steps")}</h1>
        <p>{t("The steps need gateway, storage, messaging and tunnel in one console.")}</p>
      </Empty>
    );
  }
  return <FirstRun list={describeServices(services.value)} />;
}

/** The steps, with the services beside them. */
export function FirstRun({ list }: { list: readonly ServiceLabel[] }) {
  useListeners();
  const project = useFirstProject();
  const seen = useArrivals(project);
  const steps = listSteps();
  const isDone = steps.every(({ id }) => seen[id] !== undefined);
  const leave = (): void => {
    isSkipped.value = true;
    navigate("/");
  };
  return (
    <Split pane={<Running list={list} />}>
      <div class="first">
        <h1>{t("All services run. Send them something.")}</h1>
        <p>
          {t(
            "Five steps: by a button, or as a command in a terminal, in the platform's working directory. This page shows when they arrive.",
          )}
        </p>
        {steps.map((step, index) => (
          <StepSection
            key={step.id}
            step={step}
            number={index + 1}
            seenMs={seen[step.id]}
            address={step.id === "app" ? project : undefined}
          />
        ))}
        {isDone ? (
          <button type="button" class="btn pri" onClick={leave}>
            {t("Open the overview")}
          </button>
        ) : (
          <button type="button" class="btn q" onClick={leave}>
            {t("Skip")}
          </button>
        )}
      </div>
    </Split>
  );
}

function StepSection(props: {
  step: Step;
  number: number;
  seenMs: number | undefined;
  address: string | undefined;
}) {
  const { step, number, seenMs, address } = props;
  const isSeen = seenMs !== undefined;
  return (
    <section class={isSeen ? "step done" : "step"}>
      <span class="no" aria-hidden="true">
        {isSeen ? "✓" : number}
      </span>
      <div>
        <h2>{step.title}</h2>
        <span class="note" role="status">
          {isSeen ? t("arrived at {time}", { time: formatTime(seenMs) }) : step.waiting}
        </span>
        <p>
          {step.text}
          {step.programs.length > 0 && (
            <span class="i3">
              {" "}
              {t("The command needs {names}.", { names: step.programs.join(", ") })}
            </span>
          )}
        </p>
        <div class="cmd cmd-whole">
          <i aria-hidden="true">$</i>
          <code tabIndex={0}>{areListenersKnown() ? step.command : "…"}</code>
          {areListenersKnown() && <CopyButton text={step.command} />}
        </div>
        {step.send !== undefined && <Sender send={step.send} needs={step.needs} />}
        {address !== undefined && (
          <p class="sent">
            <a class="link" href={address}>
              {address}
            </a>
          </p>
        )}
      </div>
    </section>
  );
}

/** Sends a step through the console's session. */
function Sender({ send, needs }: { send: () => Promise<string>; needs: string | undefined }) {
  const [state, setState] = useState<"idle" | "busy" | { said: string } | { error: unknown }>(
    "idle",
  );
  const run = async (): Promise<void> => {
    setState("busy");
    try {
      setState({ said: await send() });
    } catch (error) {
      setState({ error });
    }
  };
  const isBusy = state === "busy";
  return (
    <div class="sent">
      <Action
        needs={needs}
        blocked={isBusy ? t("It is being sent") : undefined}
        onClick={() => void run()}
      >
        {t("Send it for me")}
      </Action>
      {typeof state === "object" && "said" in state && (
        <span class="mono i2" role="status">
          {state.said}
        </span>
      )}
      {typeof state === "object" && "error" in state && (
        <Problem failure={toFailure(state.error)} />
      )}
    </div>
  );
}

function Running({ list }: { list: readonly ServiceLabel[] }) {
  return (
    <Section title={t("Services")}>
      <dl class="kv">
        {list.map(({ id, label }) => (
          <>
            <dt>
              <State kind={feeds.value.get(id)?.isUp === true ? "ok" : "off"}>{label}</State>
            </dt>
            <dd>{feeds.value.get(id)?.isUp === true ? t("running") : "–"}</dd>
          </>
        ))}
      </dl>
    </Section>
  );
}
