// The relay of mail: which source sets each key, a form for those that the configuration leaves open, and a test.
import { useState } from "preact/hooks";
import { segment, type ApiFailure } from "../api/api.ts";
import type { Answer } from "../contract/answer.ts";
import { formatDate } from "../format/format.ts";
import { callService, may, services, session } from "../session/session.ts";
import { Action, FormProblems, Section, TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { toFailure, useLoad } from "../view/load.ts";
import { Loading, Problem } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { attempt, say } from "../view/toast.tsx";
import { t } from "../words/words.ts";

type Relay = Answer<"notify", "GET /settings/relay">;
type Key = Relay["keys"][number];
type Trial = Answer<"notify", "POST /settings/relay/test">;

const hasService = (wanted: string): boolean => services.value.some(({ id }) => id === wanted);

/** Reads the relay. */
const READING = "notify:manage";
/** Sets it, and connects to any host for a test. */
const NEEDED = "*:*";
const PATH = "/settings/relay";

const FIELDS = {
  "smtp.host": "host",
  "smtp.port": "port",
  "smtp.user": "user",
  "smtp.pass": "pass",
} as const satisfies Record<Key["name"], string>;
const TYPES = { host: "text", port: "number", user: "text", pass: "password" } as const;

interface Draft {
  host: string;
  port: string;
  user: string;
  pass: string;
}

/** The section of the settings; empty without mail, or without the right to read its settings. */
export function RelaySection() {
  if (!hasService("notify") || session.value === undefined || !may(READING)) return null;
  return <Relays />;
}

function Relays() {
  const loaded = useLoad("relay", async () => callService<Relay>("notify", PATH));
  return (
    <Section title={t("Mail relay")} note={t("for all mail of this platform")}>
      <Loading of={loaded}>
        {(relay) =>
          relay.obstacle !== null ? (
            <p class="lead">
              {t("{key} is set by {place}, so that no relay can be set here.", relay.obstacle)}
            </p>
          ) : (
            <>
              {relay.restart_needed && <RestartNotice onRestarted={() => void loaded.reload()} />}
              <RelayForm
                key={`${relay.set_at}`}
                relay={relay}
                onSaved={(next) => loaded.set(next)}
                onRemoved={() => loaded.reload()}
              />
            </>
          )
        }
      </Loading>
    </Section>
  );
}

function RestartNotice({ onRestarted }: { onRestarted: () => void }) {
  const restart = async (): Promise<void> => {
    await callService("runtime", `/services/${segment("notify")}/restart`, {
      method: "POST",
      json: {},
    });
    say(t("{name} restarts.", { name: t("Mail") }));
    onRestarted();
  };
  return (
    <p class="banner" role="status">
      {t("Mail runs with the earlier setting until its next start.")}{" "}
      {hasService("runtime") && (
        <Action onClick={() => void attempt(restart)} icon="again" needs="runtime:manage">
          {t("Restart mail")}
        </Action>
      )}
    </p>
  );
}

/** The value of a key that is set here or by default; "" otherwise. */
function draftOf(keys: readonly Key[]): Draft {
  const read = (name: Key["name"]): string => {
    const found = keys.find((key) => key.name === name);
    return found === undefined || found.source === "configuration" ? "" : `${found.value ?? ""}`;
  };
  return { host: read("smtp.host"), port: read("smtp.port"), user: read("smtp.user"), pass: "" };
}

/** The body of a request: without fields that are empty or held by the configuration. */
function toChange({ host, port, user, pass }: Draft): Record<string, string | number> {
  return {
    ...(host.trim() === "" ? {} : { host: host.trim() }),
    ...(port.trim() === "" ? {} : { port: Number(port) }),
    ...(user === "" ? {} : { user }),
    ...(pass === "" ? {} : { pass }),
  };
}

function RelayForm(props: {
  relay: Relay;
  onSaved: (relay: Relay) => void;
  onRemoved: () => Promise<void>;
}) {
  const { relay } = props;
  const [draft, setDraft] = useState(() => draftOf(relay.keys));
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [isTesting, setTesting] = useState(false);
  const save = async (): Promise<void> => {
    setFailure(undefined);
    try {
      const json = toChange(draft);
      props.onSaved(await callService<Relay>("notify", PATH, { method: "PUT", json }));
      say(t("The relay is set."));
    } catch (error) {
      setFailure(toFailure(error));
    }
  };
  const remove = async (): Promise<void> => {
    await callService("notify", PATH, { method: "DELETE" });
    say(t("The relay is removed."));
    await props.onRemoved();
  };
  const isLocked = !may(NEEDED);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isLocked) void save();
      }}
    >
      <p class="lead">{describe(relay)}</p>
      <FormProblems.Provider value={failure?.fields ?? []}>
        <RelayFields relay={relay} draft={draft} onChange={setDraft} />
      </FormProblems.Provider>
      {failure !== undefined && <Problem failure={failure} />}
      <p class="acts">
        <button type="submit" class="btn sm pri" disabled={isLocked}>
          {t("Save")}
        </button>
        <Action onClick={() => setTesting(true)} needs={NEEDED}>
          {t("Send a test…")}
        </Action>
        {relay.set_at !== null && (
          <Action kind="quiet" onClick={() => void attempt(remove)} needs={NEEDED}>
            {t("Remove")}
          </Action>
        )}
      </p>
      {isTesting && <TrialDialog draft={draft} onClose={() => setTesting(false)} />}
    </form>
  );
}

function describe({ sends, set_by: by, set_at: at }: Relay): string {
  if (by !== null && at !== null)
    return t("Set by {name}, {date}.", { name: by, date: formatDate(at) });
  return sends
    ? t("Mail leaves through the relay of the configuration.")
    : t("No relay is set: mail stays in the inbox of this platform.");
}

function RelayFields(props: { relay: Relay; draft: Draft; onChange: (draft: Draft) => void }) {
  const { relay, draft, onChange } = props;
  const labels: Readonly<Record<keyof Draft, string>> = {
    host: t("Host"),
    port: t("Port"),
    user: t("User"),
    pass: t("Password"),
  };
  return (
    <div class="form-columns form">
      {relay.keys.map((key) => {
        const name = FIELDS[key.name];
        if (key.source === "configuration") return <HeldKey key={name} of={key} />;
        const isKept = name === "pass" && key.set;
        return (
          <TextField
            key={name}
            label={labels[name]}
            name={name}
            type={TYPES[name]}
            autocomplete={name === "pass" ? "new-password" : "off"}
            value={draft[name]}
            onInput={(value) => onChange({ ...draft, [name]: value })}
            isMono
            {...(name === "host" ? { placeholder: "smtp.example.org" } : {})}
            {...(isKept
              ? { hint: t("One is stored. Empty: it stays, for this host, port and user.") }
              : {})}
          />
        );
      })}
    </div>
  );
}

/** A key with the place in the configuration that sets it. */
function HeldKey({ of: key }: { of: Key }) {
  return (
    <div class="label">
      <span class="mono">{key.name}</span>
      <span class="mono">{key.value ?? "••••••••"}</span>
      <small class="hint">
        {t("Set by {place}, which takes precedence.", { place: key.place ?? "" })}
      </small>
    </div>
  );
}

const TRIAL_KINDS: Readonly<Record<Trial["outcome"], StateKind>> = {
  sent: "ok",
  deferred: "warn",
  rejected: "bad",
  unreachable: "bad",
};

function describeOutcome(outcome: Trial["outcome"]): string {
  const words: Record<Trial["outcome"], string> = {
    sent: t("accepted"),
    deferred: t("refused for now"),
    rejected: t("refused"),
    unreachable: t("no connection"),
  };
  return words[outcome];
}

function TrialDialog({ draft, onClose }: { draft: Draft; onClose: () => void }) {
  const [to, setTo] = useState("");
  const [trial, setTrial] = useState<Trial | undefined>(undefined);
  return (
    <FormDialog
      title={t("Send a test")}
      submit={trial === undefined ? t("Send") : t("Send again")}
      onClose={onClose}
      onSubmit={async () => {
        setTrial(undefined);
        const json = { ...toChange(draft), to };
        setTrial(await callService<Trial>("notify", `${PATH}/test`, { method: "POST", json }));
        return STAY_OPEN;
      }}
    >
      <p>{t("Through the relay as it is in the form, also before it is saved.")}</p>
      <TextField label={t("Address")} name="to" value={to} onInput={setTo} type="email" required />
      {trial !== undefined && (
        <div role="status">
          <State kind={TRIAL_KINDS[trial.outcome]}>{describeOutcome(trial.outcome)}</State>
          <pre class="block">
            {[trial.relay, trial.code, trial.enhanced, trial.text].filter(Boolean).join(" ")}
          </pre>
          <small class="hint">{t("From {address}", { address: trial.from })}</small>
        </div>
      )}
    </FormDialog>
  );
}
